package loop

import (
	"context"
	"iter"

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

// UnderWay returns the id of each effect of the user's run that is carried out, in their order and however short it
// was, until the run has ended or was deleted, or ctx ends; it is empty when one has ended and none is carried out.
// Those that had ended when it was asked are among them only where ended says so. The error is ToolExecutionError
// store_unavailable.
func (t Terminals) UnderWay(ctx context.Context, uid, runID string, ended bool) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		last, told := "", map[string]bool{}
		for w, err := range t.Loop.Watch(ctx, uid, runID) {
			if fault.Is(err, fault.Auth, fault.CodeNotFound) {
				return
			}
			if err != nil {
				yield("", err)
				return
			}
			for _, id := range w.tellOf(told, ended) {
				if last = id; !yield(id, nil) {
					return
				}
			}
			if last != "" && w.underWay() == "" {
				if last = ""; !yield("", nil) {
					return
				}
			}
			if w.Ended() {
				return
			}
			ended = true // since it was asked
		}
	}
}

// tellOf returns the ids of the effects that were started and not told of yet; of those that have ended only where
// ended says so.
func (w *Watched) tellOf(told map[string]bool, ended bool) (ids []string) {
	for _, a := range w.ex.State.Actions {
		if a.Started.Attempt == 0 || told[a.ID] {
			continue
		}
		told[a.ID] = true
		if ended || a.Status == run.ActionExecuting {
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
