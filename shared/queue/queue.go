// Package queue says "resume this run", at least once, perhaps late, perhaps twice, in any order. A message carries a
// run id and nothing else, and nobody acts on its word: the store says what may be done. Deliveries reach the resume
// function as Pub/Sub push requests (Envelope), whichever backend sends them.
package queue

import "context"

// Queue is the port: shared/queue/pubsub in the cloud, shared/queue/embedded on one machine.
type Queue interface {
	// Resume asks that the run be moved. When it returns nil the message is durable.
	Resume(ctx context.Context, runID string) error
	Close() error
}
