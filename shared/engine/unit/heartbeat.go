package unit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/wait"
	"github.com/countersign-run/countersign/shared/store/document"
)

// Reasons why the context of a step ends early. Each wraps context.Canceled, so the outcome of an effect that ends with
// it is unclear ([tool.IsAmbiguous]).
var (
	errCancelled  = fmt.Errorf("the run was cancelled: %w", context.Canceled)
	errDeadline   = fmt.Errorf("the run's time is up: %w", context.Canceled)
	errCallerGone = fmt.Errorf("the caller has cancelled: %w", context.Canceled)
	errLeaseLost  = fmt.Errorf("another process may have taken the run over: %w", context.Canceled)
)

// renewals is the number of renewals of a lease in one period.
const renewals = 3

// Heartbeat keeps this process's lease on the run during one step.
type Heartbeat struct {
	ex            *Execution
	renewer       *Execution // reads and commits while the step uses ex; nil if one lease covers the step
	seen          *Execution // the last watched state of the run's document; nil if it is not watched
	interruptible bool
	stop          func() // ends the renewer, and then the step's context

	mu    sync.Mutex
	until time.Time // when the lease ends
	ended bool      // the step must not be retried: the run was cancelled, or the lease is lost
	fresh bool      // the renewer's documents are one consistent state of the run
}

// Heartbeat returns a context for a step that may take up to limit, within the rest of the function's time, and the
// step's heartbeat. The run must be claimed. The caller must release the heartbeat before it records the outcome of the
// step.
//
// If the step may outlast one lease, a renewer renews the lease three times a period, with one commit each time. The
// step's context ends early
//   - if another process has taken the run over, or the lease is about to lapse because the store takes no commit: the
//     next owner then records the outcome;
//   - if the step is interruptible and the run was cancelled or reached its deadline: within a third of a period;
//   - if the step is interruptible and the caller cancels: at once ([Execution.Detach]).
func (ex *Execution) Heartbeat(ctx context.Context, limit time.Duration, interruptible bool) (context.Context,
	*Heartbeat) {
	acting, h, _ := beginHeartbeat(ctx, ex, limit, interruptible)
	return acting, h
}

// WatchLate is how long most interruptible steps run before the run's document is watched. A shorter step needs no
// round trip for the watch. A cancel still ends a longer step within a second.
const WatchLate = 500 * time.Millisecond

// WatchedHeartbeat is [Execution.Heartbeat] for an interruptible step that ends as soon as the run is cancelled or
// another process takes it over. It watches the run's document once the step has run for the duration after.
func (ex *Execution) WatchedHeartbeat(ctx context.Context, limit, after time.Duration) (context.Context, *Heartbeat) {
	acting, h, cancel := beginHeartbeat(ctx, ex, limit, true)
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

// watch ends the step when the run's document says so. If the document cannot be watched, the renewer and the step's
// timeout remain.
func (h *Heartbeat) watch(ctx context.Context, seen *Execution, cancel context.CancelCauseFunc) {
	for d, err := range seen.Store.Watch(ctx, document.RunPath(seen.ID)) {
		if err == nil {
			err = seen.TakeOwned(ctx, seen.Run.UID, d)
		}
		var why error
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			seen.State = nil // it may be incomplete
			seen.Log.WarnContext(ctx, "a run cannot be watched while it advances", "runId", seen.ID, "error", err)
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

func beginHeartbeat(ctx context.Context, ex *Execution, limit time.Duration, interruptible bool) (context.Context,
	*Heartbeat, context.CancelCauseFunc) {
	timed, free := WithStepTimeout(ctx, limit)
	acting, cancel := context.WithCancelCause(timed)
	h := &Heartbeat{ex: ex, interruptible: interruptible, until: ex.Run.Lease.Until}
	stays := func() bool { return true }
	if interruptible && ex.caller != nil {
		stays = context.AfterFunc(ex.caller, func() {
			if ex.CallerGone() {
				cancel(errCallerGone)
			}
		})
	}
	end, _ := timed.Deadline()
	if time.Until(end) <= ex.LeasePeriod {
		h.stop = func() { stays(); cancel(nil); free() }
		return acting, h, cancel
	}
	// A cancelled step needs its lease until it returns. A step that does not return at its timeout loses the lease.
	keeping, leave := context.WithDeadline(context.WithoutCancel(ctx), end)
	h.renewer, h.fresh = fork(ex), true
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.keep(keeping, cancel)
	}()
	h.stop = func() { stays(); leave(); <-done; cancel(nil); free() }
	return acting, h, cancel
}

// Release ends the step's context and the renewals. It may be called more than once.
func (h *Heartbeat) Release() {
	h.stop()
	if h.renewer != nil && h.fresh {
		h.ex.Snapshot.join(&h.renewer.Snapshot)
	}
	path := document.RunPath(h.ex.ID)
	if s := h.seen; s != nil && s.State != nil && s.Docs[path].Version.After(h.ex.Docs[path].Version) {
		h.ex.Snapshot.join(&s.Snapshot)
	}
	h.renewer, h.seen = nil, nil
}

// Ended reports whether the step must not be retried, because the run was cancelled or the lease is lost.
func (h *Heartbeat) Ended() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.ended
}

// Lapsed reports whether the lease has ended. A process that was paused for long checks this before it acts, because
// the next owner may have acted already.
func (h *Heartbeat) Lapsed() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.ex.clock.latest().Before(h.until)
}

// keep renews the lease until ctx ends or the lease is lost.
func (h *Heartbeat) keep(ctx context.Context, cancel context.CancelCauseFunc) {
	every := h.renewer.LeasePeriod / renewals
	for h.renewer.Sleep(ctx, every) == nil {
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

// renew renews the lease and returns why the step should end, or nil. It commits with the known version, so a cancel, a
// decision of the user or another owner causes a conflict, and the run is read again. While the store is down, the step
// continues until its lease ends.
func (h *Heartbeat) renew(ctx context.Context, every time.Duration) (why error) {
	soon, cancel := context.WithTimeout(ctx, every/2)
	defer cancel()
	k := h.renewer
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
	case fault.Is(err, fault.Auth, fault.CodeNotFound), !k.clock.latest().Add(every).Before(h.until):
		return errLeaseLost
	}
	k.Log.WarnContext(ctx, "a lease could not be renewed yet", "runId", k.ID, "error", err)
	return nil
}

// fork returns an execution with the same owner and the same knowledge of the run, for another goroutine.
func fork(ex *Execution) *Execution {
	return &Execution{Env: ex.Env, Snapshot: ex.Snapshot.fork(), Owner: ex.Owner, sink: func(Update) {}}
}
