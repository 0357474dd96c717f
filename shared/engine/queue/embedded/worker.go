package embedded

import (
	"context"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
)

// Limits of a Worker.
const (
	Moves       = 32          // runs that one Worker advances concurrently
	MostWaiting = 100_000     // runs that wait in memory; the sweep finds any others
	lookEvery   = time.Minute // interval between looks for documents of other processes without a signal
)

// A Worker is the queue of a process that advances runs itself. Resume is a wake-up in memory, without a document, and
// Run advances the run. The run's field "due" is the outbox for wake-ups that a crash loses: the next process takes
// them over when it starts (loop.Reclaim), or the sweep does. Waiting runs are advanced in the order of their requests,
// each by one call at a time. Further requests for a waiting run change nothing.
//
// Messages from and to other processes go through the documents of a [Queue] on the same store: messages about runs
// that this process does not advance, and those of processes that advance none.
type Worker struct {
	others *Queue

	mu      sync.Mutex
	waiting map[string]*wakeup // by run ID
	ready   []*wakeup          // the wakeups whose turn it is, in order
	moving  map[string]bool    // by run ID
	found   map[string]bool    // paths of documents that wakeups hold
	news    chan struct{}      // holds one signal: a wakeup is ready
}

// A wakeup is a request to advance a run.
type wakeup struct {
	queue.Message
	asked     []store.Doc // the documents that requested it; they are deleted once the run was advanced
	failed    int
	postponed *time.Timer // running until it is ready again
}

var _ queue.Queue = (*Worker)(nil)

// NewWorker returns a Worker that exchanges documents with the queues of other processes through others.
func NewWorker(others *Queue) *Worker {
	return &Worker{others: others, waiting: map[string]*wakeup{}, moving: map[string]bool{}, found: map[string]bool{},
		news: make(chan struct{}, 1)}
}

// Work holds the functions that a Worker calls.
type Work struct {
	// Serves reports whether this process advances the runs of the named agent.
	Serves func(agent string) bool
	// Move advances the run of a message; nil means that nothing is left to do. attempt counts from 1. ctx does not end
	// before Move returns.
	Move func(ctx context.Context, m queue.Message, attempt int) error
	// Elsewhere receives a value when another process may have written a document, and once at the beginning. If it is
	// nil, the Worker looks for documents every PollEvery.
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
		return queue.Unavailable(fault.New(fault.Tool, "queue_full", "%d runs are already waiting.", MostWaiting))
	}
	w.wake(&wakeup{Message: m})
	return nil
}

// Withdraw withdraws documents, as [Queue.Withdraw] does. Wake-ups in memory stay; if their run is deleted, they find
// nothing.
func (w *Worker) Withdraw(ctx context.Context,
	drop func(ctx context.Context, runIDs []string) (map[string]bool, error)) (n int, err error) {
	return w.others.Withdraw(ctx, drop)
}

// Close does nothing: Run ends with its context.
func (w *Worker) Close() error { return nil }

// wake adds a wakeup. If one is waiting for the same run already, the two are combined, and a pause of the waiting one
// ends. The caller holds the lock.
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

// makeReady puts a wakeup at the end of the ready list. The caller holds the lock.
func (w *Worker) makeReady(u *wakeup) {
	w.ready = append(w.ready, u)
	select {
	case w.news <- struct{}{}:
	default: // Run is about to look
	}
}

// next removes and returns the first ready wakeup, or nil, and marks its run as being advanced.
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

// Run advances runs, at most Moves at a time, until ctx ends. It returns when the runs in progress are done. If a run
// cannot be advanced, it calls Options.Failed, and tries again after a pause that doubles from MinBackoff to
// MaxBackoff, or at the next request for the run.
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

// looks signals when to look for documents of other processes.
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

// move advances the run, or writes a document for the process that does.
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

// delete deletes documents that have been processed. A document that stays, because the store fails, is found again.
func (w *Worker) delete(ctx context.Context, docs []store.Doc) {
	for _, d := range docs {
		if _, err := w.others.store.Commit(ctx, store.Delete(d.Path, d.Version)); err != nil && !lost(err) {
			w.others.opt.Failed(Failure{Err: queue.Unavailable(err)})
		}
	}
}

// settle records the end of a move. After a failure, the run is tried again later.
func (w *Worker) settle(u *wakeup, failed error) {
	if failed != nil {
		u.failed++
		w.others.opt.Failed(Failure{RunID: u.RunID, Attempt: u.failed, Err: failed})
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.moving, u.RunID)
	again := w.waiting[u.RunID] // requested in the meantime
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

// resumed makes a wakeup ready after its pause.
func (w *Worker) resumed(u *wakeup) {
	w.mu.Lock()
	defer w.mu.Unlock()
	u.postponed = nil
	w.makeReady(u)
}

// collect reads the documents of other processes about runs that this process advances. Each document stays until its
// run was advanced, for a later process.
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
	if err != nil { // only this package writes there, so this does not happen; it is reported once
		w.others.opt.Failed(Failure{Err: queue.Unavailable(err)})
		return
	}
	w.wake(&wakeup{Message: c.message(), asked: []store.Doc{d}})
}
