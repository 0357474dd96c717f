// Package embedded is the queue on one machine. A process that moves runs itself is asked in memory, by a [Worker].
// What processes ask of each other is durable: a [Queue] stores it as documents "queue/<id>" in any [store.Store],
// which the Worker of another process takes up, or which are pushed over HTTP as in the cloud.
//
// A message of a Queue is due at a time. To deliver it, a process claims it: an update under the version that was read
// moves the due time past the ack deadline, so that only one of many processes succeeds, and the claim of a process
// that died expires by itself. Success deletes the document, failure makes it due again after a pause that doubles from
// MinBackoff to MaxBackoff, as in a push subscription of Pub/Sub. No message is ever dropped.
package embedded

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/queue"
	"github.com/countersign-run/countersign/shared/store"
)

// The times and limits of this queue. Terraform configures Pub/Sub with the same values where it has such a setting.
const (
	AckDeadline    = 600 * time.Second // a push that takes longer is cancelled, and an older claim has expired
	MinBackoff     = time.Second
	MaxBackoff     = time.Minute
	PollEvery      = time.Second // how soon Run sees what another process has written
	Concurrency    = 16          // concurrent pushes of one Run, some of which sleep while a yes is held
	PoisonAttempts = 20          // failures after which Pub/Sub would move a message to the dead-letter topic
)

const (
	pageSize    = 100
	settleBound = 5 * time.Second // to record the result of a push, also when the caller's context has ended
)

// Options are the dependencies of the queue. The zero value is fit for production.
type Options struct {
	Now    func() time.Time // the clock of due times; nil means time.Now
	ID     func() string    // a new document id, unique forever; nil means crypto/rand.Text
	Failed func(Failure)    // called for each failure; must be safe for concurrent use and fast; may be nil
}

// Failure is a delivery that failed and will be tried again or, without a RunID, an error of the store.
type Failure struct {
	RunID   string
	Attempt int // counts from 1
	Err     error
}

// Poison reports whether the message has failed so often that an operator should look at it.
func (f Failure) Poison() bool { return f.Attempt >= PoisonAttempts }

// Push sends one push request of Pub/Sub to the resume function; nil acknowledges the message.
type Push = func(ctx context.Context, envelope []byte) error

// Queue implements [queue.Queue]. Several may share one store, in one process or in many.
type Queue struct {
	store store.Store
	opt   Options
	wake  chan struct{}
}

var _ queue.Queue = (*Queue)(nil)

// New returns the queue in the store. The caller remains responsible for closing the store.
func New(st store.Store, opt Options) *Queue {
	if opt.Now == nil {
		opt.Now = time.Now
	}
	if opt.ID == nil {
		opt.ID = rand.Text
	}
	if opt.Failed == nil {
		opt.Failed = func(Failure) {}
	}
	return &Queue{store: st, opt: opt, wake: make(chan struct{}, 1)}
}

// message returns what the document asks for.
func (c content) message() queue.Message {
	return queue.Message{RunID: c.RunID, Agent: c.Agent, UID: c.UID, ThreadID: c.ThreadID, Terminal: c.Terminal,
		Trace: c.Trace}
}

// content is the data of a queue document.
type content struct {
	RunID     string    `json:"runId"`
	Agent     string    `json:"agent,omitempty"`
	UID       string    `json:"uid,omitempty"`
	ThreadID  string    `json:"threadId,omitempty"`
	Terminal  string    `json:"terminal,omitempty"`
	Trace     string    `json:"traceparent,omitempty"`
	Published time.Time `json:"published"`
	Attempts  int       `json:"attempts"` // pushes begun so far
}

// Resume implements [queue.Queue] with one document written.
func (q *Queue) Resume(ctx context.Context, m queue.Message) error {
	if err := queue.CheckRunID(m.RunID); err != nil {
		return err
	}
	now := q.now()
	data, err := json.Marshal(content{RunID: m.RunID, Agent: m.Agent, UID: m.UID, ThreadID: m.ThreadID,
		Terminal: m.Terminal, Trace: m.Trace, Published: now})
	if err != nil {
		return fault.New(fault.Tool, fault.CodeInternal, "The message could not be written down.").Because(err)
	}
	if _, err := q.store.Commit(ctx,
		store.Create(document.MessagePath(q.opt.ID()), document.MessageFields(now), data)); err != nil {
		return queue.Unavailable(err)
	}
	select {
	case q.wake <- struct{}{}:
	default: // a Run that is about to look finds this message too
	}
	return nil
}

// Close does nothing: Run ends with its context, and the store is the caller's.
func (q *Queue) Close() error { return nil }

// now truncates the time to microseconds, as the store does.
func (q *Queue) now() time.Time { return q.opt.Now().UTC().Truncate(time.Microsecond) }

// lost reports whether another process has taken the message, which is no failure.
func lost(err error) bool { return errors.Is(err, store.ErrConflict) }
