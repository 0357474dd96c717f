// Package queue delivers messages "resume this run". Each message arrives at least once, possibly late, twice, and in
// any order. A message contains a run ID, and has no authority: its receiver reads from the store what may be done. The
// message's attributes are hints. They name the agent, so that each of several resume functions gets its own runs. They
// name the owner and the thread, so that the receiver can read everything at once. They also name the span that sent
// the message. Messages reach a resume function as Pub/Sub push requests ([Envelope]). On one machine, the process that
// advances runs receives them in memory.
package queue

import (
	"context"
	"errors"

	"github.com/countersign-run/countersign/shared/base/fault"
)

// Queue is the port. Its backends are shared/engine/queue/pubsub in the cloud and shared/engine/queue/embedded on one
// machine.
type Queue interface {
	// Resume requests that a function that serves the run's agent resumes the run. When it returns nil, the message is
	// durable, or only the end of the process that advances the run itself can lose it. In the latter case, the run's
	// field "due" makes the sweep find the run.
	Resume(ctx context.Context, m Message) error
	Close() error
}

// Message requests that a run be resumed. All fields except RunID are hints, and empty if the sender does not know
// them. A receiver checks each hint against the run's document, so a wrong hint only costs time.
type Message struct {
	RunID    string
	Agent    string // name of the run's agent
	UID      string // the run's owner
	ThreadID string // the run's thread
	Terminal string // the terminal that the run works on, if any
	Trace    string // the sender's span, as a W3C traceparent
}

// None is the queue of a process whose runs no other process resumes. It publishes nothing.
type None struct{}

// Resume always returns an error.
func (None) Resume(context.Context, Message) error {
	return errors.New("queue: no queue is configured")
}

// Close does nothing.
func (None) Close() error { return nil }

// Unavailable returns the error of a backend that could not store or deliver messages, with err as its cause.
func Unavailable(err error) error {
	return fault.Unavailable("The queue is temporarily unavailable.", err)
}
