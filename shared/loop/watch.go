package loop

import (
	"context"
	"iter"

	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/journal"
	"github.com/countersign-run/countersign/shared/run"
)

// Watch returns the user's run as it is, and again each time that its document has changed, until ctx ends, which is no
// error. Any error ends the sequence: AuthError not_found for a run that is not the user's or is deleted meanwhile,
// ToolExecutionError store_unavailable where a part of it could not be read. While the run does not change, watching
// reads and computes nothing.
func (l *Loop) Watch(ctx context.Context, uid, runID string) iter.Seq2[*Watched, error] {
	return func(yield func(*Watched, error) bool) {
		for d, err := range l.Store.Watch(ctx, document.RunPath(runID)) {
			if err != nil {
				yield(nil, journal.StoreError(err))
				return
			}
			w := &Watched{l.NewExecution(runID, nil)}
			if err := journal.TakeOwned(ctx, w.ex, uid, d); err != nil {
				yield(nil, err)
				return
			}
			if !yield(w, nil) {
				return
			}
		}
	}
}

// Watched is a run as it was when its document changed.
type Watched struct{ ex *journal.Execution }

// Moving reports whether the server goes on with the run by itself, be it elsewhere.
func (w *Watched) Moving() bool {
	st, _ := w.ex.Next()
	return moving(st)
}

// Ended reports whether the run's end is among its events.
func (w *Watched) Ended() bool { return w.ex.State.End != nil }

// Events returns the run's events with numbers above after.
func (w *Watched) Events(after int64) ([]run.EventView, error) {
	return run.ViewEvents(w.ex.Run.Nonce, w.ex.Events, after)
}

// View returns the run as its owner sees it by the clock, now. It is called once at most.
func (w *Watched) View(ctx context.Context) (*run.View, error) { return currentView(ctx, w.ex) }
