package journal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/wait"
)

// Why the context of a step ends early. Each is context.Canceled, so an effect that ends with it has an unclear outcome
// ([tool.IsAmbiguous]).
var (
	errCancelled = fmt.Errorf("the run was cancelled: %w", context.Canceled)
	errDeadline  = fmt.Errorf("the run's time is up: %w", context.Canceled)
	errLeft      = fmt.Errorf("whoever moves the run has left: %w", context.Canceled)
	errLeaseLost = fmt.Errorf("another process has taken the run over, or may have: %w", context.Canceled)
)

// renewals is how many times a lease is renewed within one period.
const renewals = 3

// Hold is this process's hold on a run during one step.
type Hold struct {
	ex            *Execution
	keeper        *Execution // reads and commits while the step uses ex; nil where one lease covers the step
	seen          *Execution // what the run's document said last, where it is watched
	interruptible bool
	stop          func() // ends the keeper, and then the step's context

	mu    sync.Mutex
	until time.Time // when the lease ends
	ended bool      // the step must not be tried again: the run was cancelled, or the lease is lost
	fresh bool      // the keeper's documents are one state of the run
}

// HoldRun returns a context for a step that may take up to limit, within what is left of the function's time, and this
// process's hold on the run, which the caller releases before it records what came of the step. The run must be
// claimed.
//
// Where the step may outlast one lease, a keeper renews the lease three times a period, each time with one commit.
// The step's context ends early
//   - if another process has taken the run over, or the lease is about to lapse because the store takes no commit: the
//     outcome is then the next owner's;
//   - if the step is interruptible and the run was cancelled or reached its deadline, within a third of a period;
//   - if the step is interruptible and whoever has the run moved leaves, at once ([Stay]).
func HoldRun(ctx context.Context, ex *Execution, limit time.Duration, interruptible bool) (context.Context, *Hold) {
	acting, h, _ := holdRun(ctx, ex, limit, interruptible)
	return acting, h
}

// WatchLate is how long most interruptible steps run before their run's document is watched. A step that ends sooner
// costs no round trip for the watch, and a cancel still ends a longer one within a second.
const WatchLate = 500 * time.Millisecond

// HoldWatched is [HoldRun] for an interruptible step. The step ends as soon as the run is cancelled or another process
// takes it over: the run's document is watched once the step has run for the time after.
func HoldWatched(ctx context.Context, ex *Execution, limit, after time.Duration) (context.Context, *Hold) {
	acting, h, cancel := holdRun(ctx, ex, limit, true)
	watching, leave := context.WithCancel(acting)
	h.seen = fork(ex)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if wait.For(watching, after) == nil {
			h.watch(watching, h.seen, cancel)
		}
	}()
	stop := h.stop
	h.stop = func() { leave(); <-done; stop() }
	return acting, h
}

// watch ends the step once the run's document says that it should. Where the document cannot be watched, the keeper and
// the step's own time are left.
func (h *Hold) watch(ctx context.Context, seen *Execution, cancel context.CancelCauseFunc) {
	for d, err := range seen.Store.Watch(ctx, document.RunPath(seen.ID)) {
		if err == nil {
			err = TakeOwned(ctx, seen, seen.Run.UID, d)
		}
		var why error
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			seen.State = nil // it may be half read
			seen.Log.WarnContext(ctx, "a run that is moved cannot be watched", "runId", seen.ID, "error", err)
			return
		case seen.Run.Lease.Owner != seen.Owner:
			why = errLeaseLost
		case seen.State.Cancelled:
			why = errCancelled
		default:
			continue
		}
		h.mu.Lock()
		h.ended = true
		h.mu.Unlock()
		cancel(why)
		return
	}
}

func holdRun(ctx context.Context, ex *Execution, limit time.Duration, interruptible bool) (context.Context, *Hold,
	context.CancelCauseFunc) {
	timed, free := WithStepTimeout(ctx, limit)
	acting, cancel := context.WithCancelCause(timed)
	h := &Hold{ex: ex, interruptible: interruptible, until: ex.Run.Lease.Until}
	stays := func() bool { return true }
	if interruptible && ex.mover != nil {
		stays = context.AfterFunc(ex.mover, func() {
			if Left(ex) {
				cancel(errLeft)
			}
		})
	}
	end, _ := timed.Deadline()
	if time.Until(end) <= ex.LeasePeriod {
		h.stop = func() { stays(); cancel(nil); free() }
		return acting, h, cancel
	}
	// A cancelled step needs its lease until it returns. One that does not return at its timeout loses it.
	keeping, leave := context.WithDeadline(context.WithoutCancel(ctx), end)
	h.keeper, h.fresh = fork(ex), true
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.keep(keeping, cancel)
	}()
	h.stop = func() { stays(); leave(); <-done; cancel(nil); free() }
	return acting, h, cancel
}

// Release ends the step's context and the renewals. It may be called more than once.
func (h *Hold) Release() {
	h.stop()
	if h.keeper != nil && h.fresh {
		join(h.ex, h.keeper)
	}
	path := document.RunPath(h.ex.ID)
	if s := h.seen; s != nil && s.State != nil && s.Docs[path].Version.After(h.ex.Docs[path].Version) {
		join(h.ex, s)
	}
	h.keeper, h.seen = nil, nil
}

// Ended reports whether the step must not be tried again: the run was cancelled, or the lease is lost.
func (h *Hold) Ended() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ended
}

// Lapsed reports whether the lease has ended. A process that was stopped for long learns of it here, before it does
// what the next owner may have done.
func (h *Hold) Lapsed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !latest(h.ex).Before(h.until)
}

// keep renews the lease until ctx ends or the lease is lost.
func (h *Hold) keep(ctx context.Context, cancel context.CancelCauseFunc) {
	every := h.keeper.LeasePeriod / renewals
	for h.keeper.Sleep(ctx, every) == nil {
		why := h.renew(ctx, every)
		if why == nil {
			continue
		}
		h.mu.Lock()
		h.ended = true
		h.mu.Unlock()
		if h.interruptible || errors.Is(why, errLeaseLost) {
			cancel(why)
		}
		if errors.Is(why, errLeaseLost) {
			return
		}
	}
}

// renew renews the lease, and returns why the step should end, if it should. The commit is made with the version that
// is known, so a cancel, a decision of the user or another owner is a conflict, and is read. While the store cannot be
// reached, the step goes on for as long as its lease lasts.
func (h *Hold) renew(ctx context.Context, every time.Duration) (why error) {
	soon, cancel := context.WithTimeout(ctx, every/2)
	defer cancel()
	k := h.keeper
	err := k.Transition(soon, func(tx *Tx) error {
		why = nil
		switch {
		case tx.Run.Lease.Owner != k.Owner:
			why = errLeaseLost
			return nil
		case tx.State.Cancelled:
			why = errCancelled
		case !tx.Now.Before(tx.Run.Deadline):
			why = errDeadline
		}
		tx.renewed, tx.Changed = true, true
		tx.Run.Lease.Until = k.leaseUntil(tx.Now, k.LeasePeriod, tx.Run.Lease.Lapsed)
		return nil
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fresh = err == nil
	switch {
	case err == nil:
		h.until = k.Run.Lease.Until
		return why
	case ctx.Err() != nil: // released
		return nil
	case fault.Is(err, fault.Auth, fault.CodeNotFound), !latest(k).Add(every).Before(h.until):
		return errLeaseLost
	}
	k.Log.WarnContext(ctx, "a lease could not be renewed yet", "runId", k.ID, "error", err)
	return nil
}

// latest returns the time by the store's clock, or a later one where the store's last answer was long in coming: an own
// lease is not taken for good too long.
func latest(ex *Execution) time.Time {
	return ex.storeTime.Add(max(0, ex.Env.Now().Sub(ex.sentTime)))
}

// fork returns an execution of the same owner that knows the run as ex does, for another goroutine.
func fork(ex *Execution) *Execution {
	path := document.RunPath(ex.ID)
	docs := map[string]store.Doc{}
	for _, p := range append(ex.Run.Log.ChunkPaths(path, "events"), path) {
		if d, ok := ex.Docs[p]; ok {
			docs[p] = d
		}
	}
	return &Execution{Env: ex.Env, ID: ex.ID, Owner: ex.Owner, sink: func(Update) {}, Docs: docs, Run: ex.Run,
		Events: slices.Clip(ex.Events), State: ex.State, storeTime: ex.storeTime, localTime: ex.localTime,
		sentTime: ex.sentTime}
}

// join takes over what a forked execution has read and committed.
func join(ex, f *Execution) {
	maps.Copy(ex.Docs, f.Docs)
	ex.Run, ex.Events, ex.State = f.Run, f.Events, f.State
	ex.storeTime, ex.localTime, ex.sentTime = f.storeTime, f.localTime, f.sentTime
}
