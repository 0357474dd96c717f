package embedded

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
)

// Run pushes due messages, at most Concurrency at a time, until ctx ends. It then cancels the pushes in progress, makes
// their messages due again at once, and returns nil. It looks for due messages when Resume is called on this Queue, and
// every PollEvery for messages that are due again or that another process has written. If the store fails, Run calls
// Options.Failed and tries again.
func (q *Queue) Run(ctx context.Context, push Push) error {
	slots := make(chan struct{}, Concurrency)
	var pushes sync.WaitGroup
	defer pushes.Wait()
	for {
		claimed, err := q.dispatch(ctx, slots, &pushes, push)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			q.opt.Failed(Failure{Err: err})
		}
		if err == nil && claimed > 0 {
			continue // there may be another page
		}
		select {
		case <-ctx.Done():
			return nil
		case <-q.wake:
		case <-time.After(PollEvery):
		}
	}
}

// dispatch claims one page of due messages, oldest first. It claims each message when there is a free slot for its
// push.
func (q *Queue) dispatch(ctx context.Context, slots chan struct{}, pushes *sync.WaitGroup, push Push) (claimed int,
	err error) {
	docs, err := q.due(ctx)
	if err != nil {
		return 0, err
	}
	for _, doc := range docs {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return claimed, ctx.Err()
		}
		c, err := q.claim(ctx, doc)
		if c == nil {
			<-slots
			if err != nil {
				return claimed, err
			}
			continue
		}
		claimed++
		pushes.Go(func() {
			defer func() { <-slots }()
			if err := q.attempt(ctx, c, push); err != nil {
				q.opt.Failed(Failure{Err: err})
			}
		})
	}
	return claimed, nil
}

// Deliver pushes each message that is due now once, oldest first and one at a time, at most 100. It returns the number
// of pushes, including failed ones, whose messages are due again later. The error is the store's or ctx's. Deliver lets
// tests deliver messages without waiting.
func (q *Queue) Deliver(ctx context.Context, push Push) (n int, err error) {
	docs, err := q.due(ctx)
	if err != nil {
		return 0, err
	}
	for _, doc := range docs {
		c, err := q.claim(ctx, doc)
		if err != nil {
			return n, err
		}
		if c == nil {
			continue
		}
		n++
		if err := q.attempt(ctx, c, push); err != nil {
			return n, err
		}
	}
	return n, ctx.Err()
}

// due returns the first page of messages that are due now.
func (q *Queue) due(ctx context.Context) ([]store.Doc, error) {
	docs, err := q.store.Query(ctx, document.DueMessages(q.now(), pageSize))
	if err != nil {
		return nil, queue.Unavailable(err)
	}
	return docs, nil
}

// claim is a message that this process owns until the ack deadline.
type claim struct {
	id      string
	path    string
	version time.Time
	stored  []byte // the content as it was read
	content
}

// claim takes the message for this process. It returns nil without an error if another process was faster.
func (q *Queue) claim(ctx context.Context, doc store.Doc) (*claim, error) {
	c := &claim{id: document.ID(doc), path: doc.Path, stored: doc.Data}
	if err := document.Decode(doc, &c.content); err != nil {
		// Only this package writes there, so this does not happen. If it does, one such document must not block the
		// others. It is pushed without a run ID, and the resume function refuses, counts and acknowledges it.
		q.opt.Failed(Failure{Err: queue.Unavailable(err)})
		c.content = content{}
	}
	c.Attempts++
	err := q.update(ctx, c, doc.Version, q.now().Add(AckDeadline))
	switch {
	case err == nil:
		return c, nil
	case lost(err):
		return nil, nil
	}
	return nil, queue.Unavailable(err)
}

// attempt pushes a claimed message and records the result. It returns only errors of the store.
func (q *Queue) attempt(ctx context.Context, c *claim, push Push) error {
	pushed := q.push(ctx, c, push)
	settled, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleBound)
	defer cancel()
	var err error
	switch {
	case pushed == nil:
		_, err = q.store.Commit(settled, store.Delete(c.path, c.version))
	case ctx.Err() != nil:
		// This process is stopping, which is no failure of the message: it is due for another process at once.
		c.Attempts--
		err = q.update(settled, c, c.version, q.now())
	default:
		q.opt.Failed(Failure{RunID: c.RunID, Attempt: c.Attempts, Err: pushed})
		err = q.update(settled, c, c.version, q.now().Add(backoff(c.Attempts)))
	}
	if err == nil || lost(err) { // lost: the claim had expired, and another process has the message
		return nil
	}
	return queue.Unavailable(err)
}

func (q *Queue) push(ctx context.Context, c *claim, push Push) error {
	ctx, cancel := context.WithTimeoutCause(ctx, AckDeadline, errors.New("the ack deadline has passed"))
	defer cancel()
	return push(ctx, queue.Envelope(c.message(), c.id, c.Attempts, c.Published))
}

func (q *Queue) update(ctx context.Context, c *claim, version time.Time, at time.Time) error {
	w, err := document.Put(store.Doc{Path: c.path, Version: version, Data: c.stored}, document.MessageFields(at),
		c.content)
	if err != nil {
		return err
	}
	versions, err := q.store.Commit(ctx, w)
	if err != nil {
		return err
	}
	c.version = versions[0]
	return nil
}

// backoff returns the pause after this number of failed attempts.
func backoff(attempts int) time.Duration {
	return min(MaxBackoff, MinBackoff<<min(attempts-1, 6))
}
