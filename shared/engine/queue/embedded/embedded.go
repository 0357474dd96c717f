// Package embedded is the queue on one machine. A process that advances runs itself receives requests in memory,
// through a [Worker]. Requests between processes are durable: a [Queue] stores them as documents "queue/<id>" in any
// [store.Store]. The Worker of another process reads these documents, or they are pushed over HTTP as in the cloud.
//
// A message of a Queue has a due time. To deliver it, a process claims it: an update with the version that was read
// moves the due time past the ack deadline. Only one of many processes succeeds, and the claim of a process that died
// expires on its own. Success deletes the document. A failure makes it due again after a pause that doubles from
// MinBackoff to MaxBackoff, as in a push subscription of Pub/Sub. No message is ever dropped.
package embedded

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
)

// Times and limits of this queue. Terraform configures Pub/Sub with the same values where Pub/Sub has such a setting.
const (
	AckDeadline    = 600 * time.Second // a longer push is cancelled, and an older claim has expired
	MinBackoff     = time.Second
	MaxBackoff     = time.Minute
	PollEvery      = time.Second // interval at which Run looks for messages of other processes
	Concurrency    = 16          // concurrent pushes of one Run; some sleep during an undo window
	PoisonAttempts = 20          // failures after which Pub/Sub would move a message to the dead-letter topic
)

const (
	pageSize    = 100
	settleBound = 5 * time.Second // time to record the result of a push, even after the caller's context has ended
)

// Options are the dependencies of the queue. The zero value is suitable for production.
type Options struct {
	Now    func() time.Time // the clock of due times; nil means time.Now
	ID     func() string    // returns a new document ID, unique forever; nil means crypto/rand.Text
	Failed func(Failure)    // called for each failure; must be fast and safe for concurrent use; may be nil
}

// Failure is a delivery that failed and is retried later. Without a RunID, it is an error of the store.
type Failure struct {
	RunID   string
	Attempt int // counts from 1
	Err     error
}

// Poison reports whether the message has failed so often that an operator should look at it.
func (f Failure) Poison() bool { return f.Attempt >= PoisonAttempts }

// Push sends one push request of Pub/Sub to the resume function. A nil error acknowledges the message.
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

// message returns the message in the document.
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

// Resume implements [queue.Queue] and writes one document.
func (q *Queue) Resume(ctx context.Context, m queue.Message) error {
	if err := queue.CheckRunID(m.RunID); err != nil {
		return err
	}
	now := q.now()
	data, err := json.Marshal(content{RunID: m.RunID, Agent: m.Agent, UID: m.UID, ThreadID: m.ThreadID,
		Terminal: m.Terminal, Trace: m.Trace, Published: now})
	if err != nil {
		return fault.New(fault.Tool, fault.CodeInternal, "The message could not be stored.").Because(err)
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

// now returns the time, truncated to microseconds as in the store.
func (q *Queue) now() time.Time { return q.opt.Now().UTC().Truncate(time.Microsecond) }

// lost reports whether another process has taken the message. That is no failure.
func lost(err error) bool { return errors.Is(err, store.ErrConflict) }
