package pubsub

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"
	"time"

	pubsub "cloud.google.com/go/pubsub/v2/apiv1"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/notify/event"
)

const (
	pullBound = 5 * time.Second // after this time without a message, the subscription is considered empty
	moreBound = time.Second     // the same, after messages have come
	pullPage  = 100
	// The attributes that Pub/Sub adds to a dead letter, and the one with the number of deliveries
	// (https://cloud.google.com/pubsub/docs/handling-failures#track-delivery-attempts).
	deadAttributes    = "CloudPubSubDeadLetterSource"
	attemptsAttribute = deadAttributes + "DeliveryCount"
)

// DeadLetter is a message that was refused in every delivery attempt: a resume message, or a notification for a webhook
// or for a person's devices. Only the IDs and a notification's type are parsed.
type DeadLetter struct {
	MessageID string
	RunID     string // empty if the message has no valid run ID
	NoticeID  string // empty if the message is not a notification
	Type      event.Type
	Attempts  int // failed deliveries; 0 if Pub/Sub does not report it
	Published time.Time

	ack     string
	message *pubsubpb.PubsubMessage // as published
}

// DeadLetters is the pull subscription of the dead-letter topic.
type DeadLetters struct {
	client *pubsub.SubscriptionAdminClient
	name   string
}

// OpenDeadLetters connects to the subscription. subscription is an ID, or has the form projects/P/subscriptions/S.
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
// deadline has passed. Pub/Sub guarantees no order, and may not return all of them at once. After an error, Take
// releases the letters.
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
		letters[i] = letter(m.Message, m.AckId)
	}
	return letters, nil
}

func letter(m *pubsubpb.PubsubMessage, ack string) DeadLetter {
	l := DeadLetter{MessageID: m.MessageId, Published: m.PublishTime.AsTime(), ack: ack}
	l.Attempts, _ = strconv.Atoi(m.Attributes[attemptsAttribute]) // absent on the emulator
	maps.DeleteFunc(m.Attributes, func(name, _ string) bool { return strings.HasPrefix(name, deadAttributes) })
	l.message = &pubsubpb.PubsubMessage{Data: m.Data, Attributes: m.Attributes}
	if runID, err := queue.ParseBody(m.Data); err == nil {
		l.RunID = runID
	} else if n, err := queue.ParseEvent(m.Data); err == nil && queue.CheckRunID(n.Data.RunID) == nil {
		l.NoticeID, l.Type, l.RunID = n.ID, n.Type, n.Data.RunID
		l.message.OrderingKey = l.RunID
	}
	return l
}

// Replay publishes the letter's original message again. The letter stays until it is dropped.
func (q *Queue) Replay(ctx context.Context, l DeadLetter) error { return q.publish(ctx, l.message) }

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
