// Package embedded is the queue on one machine: a durable one, kept as documents "queue/<id>" in any store.Store.
//
// A message is due at a time. Whoever delivers it first claims it: an update under the version that was read moves the
// due time past the ack deadline, so that of many processes one wins, and a claim whose owner died lapses by itself.
// Success deletes the document, failure makes it due again after a pause that doubles from MinBackoff to MaxBackoff, as
// a push subscription of Pub/Sub does. No message is ever given up.
package embedded

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/queue"
	"github.com/countersign-run/countersign/shared/store"
)

// The times and counts of this queue; those that Pub/Sub knows too are what terraform sets there.
const (
	AckDeadline    = 600 * time.Second // a push that takes longer is cut off, and a claim that is older has lapsed
	MinBackoff     = time.Second
	MaxBackoff     = time.Minute
	PollEvery      = time.Second // how soon Run sees what another process has written
	Concurrency    = 4           // pushes that one Run has under way
	PoisonAttempts = 20          // failures after which Pub/Sub would move a message to the dead-letter topic
)

const (
	collection  = "queue"
	pageSize    = 100
	settleBound = 5 * time.Second // to write how a push ended, also when the caller's context is over
)

// Options are what the queue takes from outside. The zero value is good for production.
type Options struct {
	Now    func() time.Time // the clock that due times are in; time.Now
	ID     func() string    // a new document id, unique for ever; crypto/rand.Text
	Failed func(Failure)    // is told of each failure; must be safe for concurrent use and quick; nobody
}

// Failure is a delivery that did not succeed and will be tried again, or, without a RunID, a time at which the store did
// not answer.
type Failure struct {
	RunID   string
	Attempt int // counts from 1
	Err     error
}

// Poison says that the message has failed so often that a person should look at it.
func (f Failure) Poison() bool { return f.Attempt >= PoisonAttempts }

// Push hands one push request of Pub/Sub to the resume function; nil acknowledges the message.
type Push = func(ctx context.Context, envelope []byte) error

// Queue implements queue.Queue. Several may work on one store, in one process or in many.
type Queue struct {
	store store.Store
	opt   Options
	wake  chan struct{}
}

var _ queue.Queue = (*Queue)(nil)

// New gives the queue that lives in the store, which stays the caller's to close.
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

// content is the data of a queue document.
type content struct {
	RunID     string    `json:"runId"`
	Published time.Time `json:"published"`
	Attempts  int       `json:"attempts"` // pushes begun so far
}

// Resume implements queue.Queue with one document written.
func (q *Queue) Resume(ctx context.Context, runID string) error {
	if err := queue.CheckRunID(runID); err != nil {
		return err
	}
	now := q.now()
	data, err := json.Marshal(content{RunID: runID, Published: now})
	if err != nil {
		return fault.New(fault.Tool, fault.CodeInternal, "The message could not be written down.").Because(err)
	}
	if _, err := q.store.Commit(ctx, store.Create(collection+"/"+q.opt.ID(), due(now), data)); err != nil {
		return unavailable(err)
	}
	select {
	case q.wake <- struct{}{}:
	default: // a Run that has yet to look finds this message too
	}
	return nil
}

// Close ends nothing: Run ends with its context, and the store is the caller's.
func (q *Queue) Close() error { return nil }

// now is in the unit of the store, which keeps microseconds.
func (q *Queue) now() time.Time { return q.opt.Now().UTC().Truncate(time.Microsecond) }

func due(at time.Time) map[string]any { return map[string]any{"due": at} }

func unavailable(err error) error {
	return fault.New(fault.Tool, fault.CodeStoreUnavailable, "The queue does not answer for now.").Because(err)
}

// lost says that another process has the message by now, which is no failure.
func lost(err error) bool { return errors.Is(err, store.ErrConflict) }
