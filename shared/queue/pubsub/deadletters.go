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
	pullBound = 5 * time.Second // without a message, the subscription is taken for empty
	moreBound = time.Second     // the same, behind messages that came
	pullPage  = 100
	// What Pub/Sub says of a dead letter (https://cloud.google.com/pubsub/docs/handling-failures#track-delivery-attempts).
	attemptsAttribute = "CloudPubSubDeadLetterSourceDeliveryCount"
)

// DeadLetter is a message that resume has refused as often as it is delivered. Its content is looked at for the run's id alone.
type DeadLetter struct {
	MessageID string
	RunID     string // empty where the message is none of ours
	Attempts  int    // deliveries to resume that failed; 0 where Pub/Sub does not say
	Published time.Time

	ack string
}

// DeadLetters is the pull subscription that dead letters wait in.
type DeadLetters struct {
	client *pubsub.SubscriptionAdminClient
	name   string
}

// OpenDeadLetters connects to the subscription: an id, or projects/P/subscriptions/S.
func OpenDeadLetters(ctx context.Context, projectID, subscription string) (*DeadLetters, error) {
	client, err := pubsub.NewSubscriptionAdminClient(ctx)
	if err != nil {
		return nil, unavailable(err)
	}
	name := subscription
	if !strings.HasPrefix(name, "projects/") {
		name = fmt.Sprintf("projects/%s/subscriptions/%s", projectID, subscription)
	}
	return &DeadLetters{client, name}, nil
}

// Take gives up to limit dead letters, which nobody else sees until they are released or the subscription's ack deadline
// has passed. Pub/Sub gives no order, and no promise that it gives all at once.
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
		return nil, nil // nothing came
	case status.Code(err) == codes.NotFound:
		return nil, fmt.Errorf("there is no subscription %s: terraform makes it, and prints its name as dead_letters", d.name)
	case err != nil:
		return nil, fmt.Errorf("the subscription %s cannot be read: %w", d.name, err)
	}
	letters := make([]DeadLetter, len(got.ReceivedMessages))
	for i, m := range got.ReceivedMessages {
		letters[i] = DeadLetter{MessageID: m.Message.MessageId, Published: m.Message.PublishTime.AsTime(), ack: m.AckId}
		letters[i].Attempts, _ = strconv.Atoi(m.Message.Attributes[attemptsAttribute]) // absent on the emulator
		if runID, err := queue.ParseBody(m.Message.Data); err == nil {
			letters[i].RunID = runID
		}
	}
	return letters, nil
}

// Drop removes dead letters for good.
func (d *DeadLetters) Drop(ctx context.Context, letters ...DeadLetter) error {
	if len(letters) == 0 {
		return nil
	}
	return d.client.Acknowledge(ctx, &pubsubpb.AcknowledgeRequest{Subscription: d.name, AckIds: acks(letters)})
}

// Release gives dead letters back, to be taken again at once.
func (d *DeadLetters) Release(ctx context.Context, letters ...DeadLetter) error {
	if len(letters) == 0 {
		return nil
	}
	return d.client.ModifyAckDeadline(ctx, &pubsubpb.ModifyAckDeadlineRequest{Subscription: d.name, AckIds: acks(letters), AckDeadlineSeconds: 0})
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
