package loop

import (
	"context"
	"iter"
	"slices"

	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/journal"
	"github.com/countersign-run/countersign/shared/run"
)

// Terminals tells of the runs on terminals.
type Terminals struct{ Loop *Loop }

// OnTerminal returns the id of the run that the user's terminal is kept for, or was last, and of each one after it,
// until ctx ends, which is no error. It is empty where there was none. The error is ToolExecutionError
// store_unavailable. While nothing changes, watching reads nothing.
func (t Terminals) OnTerminal(ctx context.Context, uid, terminalID string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for d, err := range t.Loop.Store.Watch(ctx, document.TerminalRunPath(uid, terminalID)) {
			var on run.TerminalRun
			if err == nil && d.Exists() {
				err = document.Decode(d, &on)
			}
			if err != nil {
				yield("", journal.StoreError(err))
				return
			}
			if !yield(on.RunID, nil) {
				return
			}
		}
	}
}

// UnderWay returns the ids of the effects of the user's run that were started since it told last, in their order and
// however short they were, and as the last one the id of that which is carried out now, or "" where none is: at first,
// and whenever this changes, until the run has ended or was deleted, or ctx ends. What was done when it was asked is
// among the first, but of a run that had ended by then only where ended says so. The error is ToolExecutionError
// store_unavailable.
func (t Terminals) UnderWay(ctx context.Context, uid, runID string, ended bool) iter.Seq2[[]string, error] {
	return func(yield func([]string, error) bool) {
		told, last, first := map[string]bool{}, "", true
		for w, err := range t.Loop.Watch(ctx, uid, runID) {
			if fault.Is(err, fault.Auth, fault.CodeNotFound) {
				return
			}
			if err != nil {
				yield(nil, err)
				return
			}
			ids, now := w.startedBut(told), w.underWay()
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

// startedBut returns the ids of the effects that were started and not told of yet, and notes them as told.
func (w *Watched) startedBut(told map[string]bool) (ids []string) {
	for _, a := range w.ex.State.Actions {
		if a.Started.Attempt > 0 && !told[a.ID] {
			told[a.ID] = true
			ids = append(ids, a.ID)
		}
	}
	return ids
}

// underWay returns the id of the effect that is being carried out, or "".
func (w *Watched) underWay() string {
	for _, a := range w.ex.State.Actions {
		if a.Status == run.ActionExecuting {
			return a.ID
		}
	}
	return ""
}
