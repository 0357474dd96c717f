package loop

import (
	"context"
	"iter"
	"slices"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/document"
)

// Terminals provides information about runs on terminals.
type Terminals struct{ Loop *Loop }

// OnTerminal returns the ID of the run that last reserved the user's terminal, and then the ID of each later one, until
// ctx ends, which is no error. The ID is empty if there was none. The error is ToolExecutionError store_unavailable. It
// reads nothing while nothing changes.
func (t Terminals) OnTerminal(ctx context.Context, uid, terminalID string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for d, err := range t.Loop.Store.Watch(ctx, document.TerminalRunPath(uid, terminalID)) {
			var on run.TerminalRun
			if err == nil && d.Exists() {
				err = document.Decode(d, &on)
			}
			if err != nil {
				yield("", unit.StoreError(err))
				return
			}
			if !yield(on.RunID, nil) {
				return
			}
		}
	}
}

// UnderWay returns the IDs of the effects that the user's run has started since the previous result, in their order.
// The last element is the effect in progress, or "" if there is none. It returns a result at first and after each
// change, until the run has ended or was deleted, or ctx ends. The first result includes effects that ended before the
// call. For a run that had ended by then, it includes them only if ended is true. The error is ToolExecutionError
// store_unavailable.
func (t Terminals) UnderWay(ctx context.Context, uid, runID string, ended bool) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		reported, last, first := map[string]bool{}, "", true
		for w, err := range t.Loop.Watch(ctx, uid, runID) {
			if fault.Is(err, fault.Auth, fault.CodeNotFound) {
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
			ids, now := w.startedBut(reported), w.underWay()
			if first && w.Ended() && !ended {
				ids = nil
			}
			if first || len(ids) > 0 || now != last {
				if !yield(append(slices.DeleteFunc(ids, func(id string) bool { return id == now }), now), nil) {
					return
				}
			}
			if last, first = now, false; w.Ended() {
				return
			}
		}
	}
}

// startedBut returns the IDs of the started effects that are not in told, and adds them to told.
func (w *Watched) startedBut(reported map[string]bool) (ids []string) {
	for _, a := range w.ex.State.Actions {
		if a.Started.Attempt > 0 && !reported[a.ID] {
			reported[a.ID] = true
			ids = append(ids, a.ID)
		}
	}
	return ids
}

// underWay returns the ID of the effect in progress, or "".
func (w *Watched) underWay() string {
	for _, a := range w.ex.State.Actions {
		if a.Status == run.ActionExecuting {
			return a.ID
		}
	}
	return ""
}
