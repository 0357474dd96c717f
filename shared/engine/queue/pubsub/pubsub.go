// Package pubsub is the queue in the cloud. Resume publishes to a topic of Google Cloud Pub/Sub. A push subscription
// with a service account's token delivers to the resume function. Terraform creates the topic and the subscription in
// the cloud, and Emulate creates them in the emulator.
package pubsub

import (
	"context"
	"fmt"
	"time"

	pubsub "cloud.google.com/go/pubsub/v2/apiv1"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/countersign-run/countersign/shared/engine/queue"
)

// publishBound is how long Resume waits for the server's acknowledgement. A publish takes milliseconds, and the library
// retries temporary failures. If a message is lost nevertheless, the sweep finds its run.
const publishBound = 10 * time.Second

// Queue implements [queue.Queue].
type Queue struct {
	client *pubsub.TopicAdminClient
	topic  string // projects/.../topics/...
}

var _ queue.Queue = (*Queue)(nil)

// Open connects to Pub/Sub, or to the emulator that PUBSUB_EMULATOR_HOST names. It sends no request, because the
// functions' service accounts may only publish; the first Resume reports a missing topic. It uses the generated client,
// not pubsub.Publisher. A Publisher delays a single message by 10 ms for batching, and continues in the background
// after its caller has returned.
func Open(ctx context.Context, projectID, topic string) (*Queue, error) {
	client, err := pubsub.NewTopicAdminClient(ctx)
	if err != nil {
		return nil, queue.Unavailable(err)
	}
	return &Queue{client: client, topic: topicName(projectID, topic)}, nil
}

// Resume implements [queue.Queue]. It returns nil once Pub/Sub has acknowledged the message.
func (q *Queue) Resume(ctx context.Context, m queue.Message) error {
	if err := queue.CheckRunID(m.RunID); err != nil {
		return err
	}
	return q.publish(ctx, &pubsubpb.PubsubMessage{Data: queue.Body(m.RunID), Attributes: m.Attributes()})
}

func (q *Queue) publish(ctx context.Context, messages ...*pubsubpb.PubsubMessage) error {
	ctx, cancel := context.WithTimeout(ctx, publishBound)
	defer cancel()
	_, err := q.client.Publish(ctx, &pubsubpb.PublishRequest{Topic: q.topic, Messages: messages})
	if err != nil {
		return queue.Unavailable(err)
	}
	return nil
}

// Close closes the connection.
func (q *Queue) Close() error {
	if err := q.client.Close(); err != nil {
		return queue.Unavailable(err)
	}
	return nil
}

func topicName(projectID, topic string) string {
	return fmt.Sprintf("projects/%s/topics/%s", projectID, topic)
}
