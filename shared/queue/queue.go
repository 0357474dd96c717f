// Package queue delivers messages "resume this run", each at least once, possibly late, twice, and in any order. A
// message contains a run id, and has no authority: its receiver reads from the store what may be done. Its attributes
// are hints: which agent's run it is, so that each of several resume functions gets its own, whose it is and in
// which thread, so that its receiver can read all that it needs at once, and which span asks. Messages reach a resume
// function as Pub/Sub push requests ([Envelope]); on one machine the process that moves runs is asked in memory.
package queue

import (
	"context"
	"errors"

	"github.com/countersign-run/countersign/shared/fault"
)

// Queue is the port; its backends are shared/queue/pubsub in the cloud and shared/queue/embedded on one machine.
type Queue interface {
	// Resume requests that the run be resumed by a function that serves its agent. When it returns nil, the message is
	// durable, or only the end of the process that moves the run itself can lose it; the run's field "due" then brings
	// it back.
	Resume(ctx context.Context, m Message) error
	Close() error
}

// Message asks for a run to be resumed. All but RunID are hints, each empty where the sender does not know it: what
// rests on one is checked against the run's document first, and a wrong one costs its receiver time and nothing else.
type Message struct {
	RunID    string
	Agent    string // the name of the agent that carries the run out
	UID      string // the run's owner
	ThreadID string // the run's thread
	Terminal string // that the run is on, if it is on one
	Trace    string // the span that asks, as traceparent of W3C Trace Context has it
}

// None is the queue of a process whose runs nobody resumes: it publishes nothing.
type None struct{}

// Resume returns an error.
func (None) Resume(context.Context, Message) error {
	return errors.New("queue: there is none to publish to")
}

// Close does nothing.
func (None) Close() error { return nil }

// Unavailable returns the error of a backend that could not keep or deliver messages, because of err.
func Unavailable(err error) error {
	return fault.Unavailable("The queue does not answer for now.", err)
}
