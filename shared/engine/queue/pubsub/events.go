package pubsub

import (
	"context"

	pubsub "cloud.google.com/go/pubsub/v2/apiv1"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/notify/event"
)

// TypeAttribute is the attribute with a notification's type, for the filters of subscriptions.
const TypeAttribute = "type"

// Events implements [event.Publisher]. Each notification is a message of the topic: an event in the JSON format of
// CloudEvents (https://github.com/googleapis/google-cloudevents/blob/main/docs/spec/pubsub.md). Its ordering key is the
// run, so a subscription that keeps order gets the notifications of one run in order.
type Events struct {
	q      *Queue
	source string
}

var _ event.Publisher = Events{}

// OpenEvents connects as Open does. source is the source of the events: a URI, or the beginning of one.
func OpenEvents(ctx context.Context, projectID, topic, source string) (Events, error) {
	client, err := pubsub.NewTopicAdminClient(ctx)
	if err != nil {
		return Events{}, queue.Unavailable(err)
	}
	return Events{&Queue{client: client, topic: topicName(projectID, topic)}, source}, nil
}

// Publish implements [event.Publisher]. It returns nil once Pub/Sub has acknowledged all of the notifications.
func (n Events) Publish(ctx context.Context, notices ...event.Event) error {
	messages := make([]*pubsubpb.PubsubMessage, len(notices))
	for i, one := range notices {
		data, err := one.Encode(n.source)
		if err != nil {
			return err
		}
		messages[i] = &pubsubpb.PubsubMessage{Data: data, OrderingKey: one.Data.RunID,
			Attributes: map[string]string{"content-type": event.ContentType, TypeAttribute: string(one.Type)}}
	}
	return n.q.publish(ctx, messages...)
}

// Close closes the connection.
func (n Events) Close() error { return n.q.Close() }
