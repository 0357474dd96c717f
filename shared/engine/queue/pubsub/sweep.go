package pubsub

import (
	"context"

	pubsub "cloud.google.com/go/pubsub/v2/apiv1"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"

	"github.com/countersign-run/countersign/shared/engine/queue"
)

// Sweeper implements [queue.Sweeper]. Its topic's messages are pushed to the sweep function.
type Sweeper struct{ q *Queue }

var _ queue.Sweeper = Sweeper{}

// OpenSweeper connects as Open does.
func OpenSweeper(ctx context.Context, projectID, topic string) (Sweeper, error) {
	client, err := pubsub.NewTopicAdminClient(ctx)
	if err != nil {
		return Sweeper{}, queue.Unavailable(err)
	}
	return Sweeper{&Queue{client: client, topic: topicName(projectID, topic)}}, nil
}

// Sweep implements [queue.Sweeper]. It returns nil once Pub/Sub has acknowledged the message.
func (s Sweeper) Sweep(ctx context.Context, shard queue.Shard) error {
	return s.q.publish(ctx, &pubsubpb.PubsubMessage{Data: queue.ShardBody(shard)})
}

// Close closes the connection.
func (s Sweeper) Close() error { return s.q.Close() }
