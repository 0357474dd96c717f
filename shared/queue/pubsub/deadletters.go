package pubsub

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	pubsub "cloud.google.com/go/pubsub/v2/apiv1"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/countersign-run/countersign/shared/queue"
)

const (
	pullBound = 5 * time.Second // after this time without a message, the subscription is considered empty
	moreBound = time.Second     // the same, after messages have come
	pullPage  = 100
	// The attribute by which Pub/Sub counts a dead letter's deliveries
	// (https://cloud.google.com/pubsub/docs/handling-failures#track-delivery-attempts).
	attemptsAttribute = "CloudPubSubDeadLetterSourceDeliveryCount"
)

// DeadLetter is a message that resume has refused in every delivery attempt. Of its content only the run's id is read,
// and of its attributes the run's agent.
type DeadLetter struct {
	MessageID string
	RunID     string // empty if the message has no valid run id
	Agent     string // whose run it is; empty if the message does not say
	Attempts  int    // failed deliveries to resume; 0 if Pub/Sub does not include it
	Published time.Time

	ack string
}

// DeadLetters is the pull subscription of the dead-letter topic.
type DeadLetters struct {
	client *pubsub.SubscriptionAdminClient
	name   string
}

// OpenDeadLetters connects to the subscription, given as an id or as projects/P/subscriptions/S.
func OpenDeadLetters(ctx context.Context, projectID, subscription string) (*DeadLetters, error) {
	client, err := pubsub.NewSubscriptionAdminClient(ctx)
	if err != nil {
		return nil, queue.Unavailable(err)
	}
	name := subscription
	if !strings.HasPrefix(name, "projects/") {
		name = fmt.Sprintf("projects/%s/subscriptions/%s", projectID, subscription)
	}
	return &DeadLetters{client, name}, nil
}

// Take returns up to limit dead letters. No other caller gets them until they are released or the subscription's ack
// deadline has passed. Pub/Sub guarantees no order, and does not guarantee to return all at once.
func (d *DeadLetters) Take(ctx context.Context, limit int) (letters []DeadLetter, err error) {
	for patience := pullBound; len(letters) < limit; patience = moreBound {
		page, err := d.pull(ctx, patience, min(pullPage, limit-len(letters)))
		if err != nil {
			return letters, errors.Join(err, d.Release(ctx, letters...))
		}
		if len(page) == 0 {
			break
		}
		letters = append(letters, page...)
	}
	return letters, nil
}

func (d *DeadLetters) pull(ctx context.Context, patience time.Duration, limit int) ([]DeadLetter, error) {
	bounded, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	got, err := d.client.Pull(bounded, &pubsubpb.PullRequest{Subscription: d.name, MaxMessages: int32(limit)})
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case bounded.Err() != nil || status.Code(err) == codes.DeadlineExceeded:
		return nil, nil // no message came
	case status.Code(err) == codes.NotFound:
		return nil, fmt.Errorf("there is no subscription %s: terraform makes it, and prints its name as dead_letters",
			d.name)
	case err != nil:
		return nil, fmt.Errorf("the subscription %s cannot be read: %w", d.name, err)
	}
	letters := make([]DeadLetter, len(got.ReceivedMessages))
	for i, m := range got.ReceivedMessages {
		letters[i] = DeadLetter{MessageID: m.Message.MessageId, Published: m.Message.PublishTime.AsTime(), ack: m.AckId}
		letters[i].Attempts, _ = strconv.Atoi(m.Message.Attributes[attemptsAttribute]) // absent on the emulator
		letters[i].Agent = m.Message.Attributes[queue.AgentAttribute]
		if runID, err := queue.ParseBody(m.Message.Data); err == nil {
			letters[i].RunID = runID
		}
	}
	return letters, nil
}

// Drop deletes dead letters permanently.
func (d *DeadLetters) Drop(ctx context.Context, letters ...DeadLetter) error {
	if len(letters) == 0 {
		return nil
	}
	return d.client.Acknowledge(ctx, &pubsubpb.AcknowledgeRequest{Subscription: d.name, AckIds: acks(letters)})
}

// Release returns dead letters to the subscription, which can deliver them again at once.
func (d *DeadLetters) Release(ctx context.Context, letters ...DeadLetter) error {
	if len(letters) == 0 {
		return nil
	}
	return d.client.ModifyAckDeadline(ctx,
		&pubsubpb.ModifyAckDeadlineRequest{Subscription: d.name, AckIds: acks(letters), AckDeadlineSeconds: 0})
}

func acks(letters []DeadLetter) []string {
	ids := make([]string, len(letters))
	for i, l := range letters {
		ids[i] = l.ack
	}
	return ids
}

// Close closes the connection.
func (d *DeadLetters) Close() error { return d.client.Close() }
