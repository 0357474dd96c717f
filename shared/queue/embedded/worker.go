package embedded

import (
	"context"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/queue"
	"github.com/countersign-run/countersign/shared/store"
)

// The limits of a Worker.
const (
	Moves       = 32          // runs that one Worker moves at the same time
	MostWaiting = 100_000     // runs that wait in memory; the sweep finds those beyond
	lookEvery   = time.Minute // how often it looks for documents of other processes that nobody has told it of
)

// A Worker is the queue of a process that moves runs itself: Resume is a wake-up in memory, without a document, and Run
// moves the run. The run's field "due" is the outbox of what a crash loses: whoever starts next takes it up
// (loop.Reclaim), and otherwise the sweep. Runs that wait are moved in the order in which they were asked for, each by
// one call at a time; to ask twice for a run that waits is to ask once.
//
// What is for others, and what is from them, goes through the documents of a [Queue] on the same store: a message about
// a run that this process does not move, and those of processes that move none.
type Worker struct {
	others *Queue

	mu      sync.Mutex
	waiting map[string]*wakeup // by run
	ready   []*wakeup          // those of them whose turn it is, in order
	moving  map[string]bool    // runs
	found   map[string]bool    // paths of documents that wakeups hold
	news    chan struct{}      // holds one signal: a wakeup is ready
}

// A wakeup asks for a run to be moved.
type wakeup struct {
	queue.Message
	asked     []store.Doc // the documents that asked for it, deleted when it was moved
	failed    int
	postponed *time.Timer // until it is ready again
}

var _ queue.Queue = (*Worker)(nil)

// NewWorker returns a Worker that shares documents with the queues of other processes through others.
func NewWorker(others *Queue) *Worker {
	return &Worker{others: others, waiting: map[string]*wakeup{}, moving: map[string]bool{}, found: map[string]bool{},
		news: make(chan struct{}, 1)}
}

// Work is what a Worker works with.
type Work struct {
	// Serves reports whether this process moves the runs of the agent with the name.
	Serves func(agent string) bool
	// Move moves the run of a message; nil means that nothing is left to do. attempt counts from 1. ctx does not end
	// before Move returns.
	Move func(ctx context.Context, m queue.Message, attempt int) error
	// Elsewhere receives when another process may have written a document, and once at the beginning. nil means that
	// this must be looked for, every PollEvery.
	Elsewhere <-chan struct{}
}

// Resume implements [queue.Queue] without a write. The message is lost with the process; see [Worker].
func (w *Worker) Resume(ctx context.Context, m queue.Message) error {
	if err := queue.CheckRunID(m.RunID); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return queue.Unavailable(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiting[m.RunID] == nil && len(w.waiting) >= MostWaiting {
		return queue.Unavailable(fault.New(fault.Tool, "queue_full", "%d runs wait already.", MostWaiting))
	}
	w.wake(&wakeup{Message: m})
	return nil
}

// Withdraw is that of the documents. A run that is deleted meanwhile is looked for and not found.
func (w *Worker) Withdraw(ctx context.Context,
	drop func(ctx context.Context, runIDs []string) (map[string]bool, error)) (n int, err error) {
	return w.others.Withdraw(ctx, drop)
}

// Close does nothing: Run ends with its context.
func (w *Worker) Close() error { return nil }

// wake adds a wakeup. One that waits for the same run already stands for both, and no longer waits for its pause to
// end. The lock is held.
func (w *Worker) wake(u *wakeup) {
	if known := w.waiting[u.RunID]; known != nil {
		known.asked = append(known.asked, u.asked...)
		if known.postponed != nil && known.postponed.Stop() {
			known.postponed = nil
			w.makeReady(known)
		}
		return
	}
	w.waiting[u.RunID] = u
	if !w.moving[u.RunID] {
		w.makeReady(u)
	}
}

// makeReady puts a wakeup at the end of those whose turn it is. The lock is held.
func (w *Worker) makeReady(u *wakeup) {
	w.ready = append(w.ready, u)
	select {
	case w.news <- struct{}{}:
	default: // Run is about to look
	}
}

// next takes the first wakeup whose turn it is, or nil, for moving its run.
func (w *Worker) next() *wakeup {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.ready) == 0 {
		return nil
	}
	u := w.ready[0]
	w.ready[0], w.ready = nil, w.ready[1:]
	delete(w.waiting, u.RunID)
	w.moving[u.RunID] = true
	return u
}

// Run moves runs, at most Moves at a time, until ctx ends, and returns when those under way are moved. Of a run that
// could not be moved it reports to Options.Failed, and tries it again after a pause that doubles from MinBackoff to
// MaxBackoff, or when it is asked for.
func (w *Worker) Run(ctx context.Context, work Work) {
	slots := make(chan struct{}, Moves)
	var moves sync.WaitGroup
	defer moves.Wait()
	look := newLooks(work.Elsewhere)
	defer look.ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-look.told:
			w.collect(ctx, work)
		case <-look.ticker.C:
			w.collect(ctx, work)
		case <-w.news:
		}
		for u := w.next(); u != nil; u = w.next() {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return
			}
			moves.Go(func() {
				defer func() { <-slots }()
				w.settle(u, w.move(ctx, u, work))
			})
		}
	}
}

// looks says when to look for documents of other processes.
type looks struct {
	told   <-chan struct{}
	ticker *time.Ticker
}

func newLooks(elsewhere <-chan struct{}) looks {
	if elsewhere != nil {
		return looks{elsewhere, time.NewTicker(lookEvery)}
	}
	return looks{nil, time.NewTicker(PollEvery)}
}

// move moves the run, or leaves a document to the process that does.
func (w *Worker) move(ctx context.Context, u *wakeup, work Work) error {
	ctx = context.WithoutCancel(ctx)
	if !work.Serves(u.Agent) {
		ctx, cancel := context.WithTimeout(ctx, settleBound)
		defer cancel()
		return w.others.Resume(ctx, u.Message)
	}
	if err := work.Move(ctx, u.Message, u.failed+1); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, settleBound)
	defer cancel()
	w.delete(ctx, u.asked)
	return nil
}

// delete deletes documents that have been heeded. One that stays, because the store does not answer, is found again.
func (w *Worker) delete(ctx context.Context, docs []store.Doc) {
	for _, d := range docs {
		if _, err := w.others.store.Commit(ctx, store.Delete(d.Path, d.Version)); err != nil && !lost(err) {
			w.others.opt.Failed(Failure{Err: queue.Unavailable(err)})
		}
	}
}

// settle ends the move of a run. After a failure the run is asked for again later.
func (w *Worker) settle(u *wakeup, failed error) {
	if failed != nil {
		u.failed++
		w.others.opt.Failed(Failure{RunID: u.RunID, Attempt: u.failed, Err: failed})
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.moving, u.RunID)
	again := w.waiting[u.RunID] // it was asked for meanwhile
	switch {
	case failed == nil:
		for _, d := range u.asked {
			delete(w.found, d.Path)
		}
	case again != nil:
		again.asked, again.failed = append(again.asked, u.asked...), u.failed
	default:
		w.waiting[u.RunID] = u
		u.postponed = time.AfterFunc(backoff(u.failed), func() { w.resumed(u) })
	}
	if again != nil {
		w.makeReady(again)
	}
}

// resumed makes a wakeup ready whose pause has ended.
func (w *Worker) resumed(u *wakeup) {
	w.mu.Lock()
	defer w.mu.Unlock()
	u.postponed = nil
	w.makeReady(u)
}

// collect takes up the documents of other processes about runs that this one moves. Each stays until its run was moved,
// for a process after this one.
func (w *Worker) collect(ctx context.Context, work Work) {
	for docs, err := range document.Pages(ctx, w.others.store, document.DueMessages(w.others.now(), pageSize)) {
		if err != nil {
			if ctx.Err() == nil {
				w.others.opt.Failed(Failure{Err: queue.Unavailable(err)})
			}
			return
		}
		for _, d := range docs {
			w.collectOne(d, work)
		}
	}
}

func (w *Worker) collectOne(d store.Doc, work Work) {
	var c content
	err := document.Decode(d, &c)
	if err == nil {
		err = queue.CheckRunID(c.RunID)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.found[d.Path] || err == nil && !work.Serves(c.Agent) || len(w.waiting) >= MostWaiting {
		return
	}
	w.found[d.Path] = true
	if err != nil { // only this package writes there, so this does not happen; it is told once
		w.others.opt.Failed(Failure{Err: queue.Unavailable(err)})
		return
	}
	w.wake(&wakeup{Message: c.message(), asked: []store.Doc{d}})
}
