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

// UnderWay returns the id of the call of the user's run that is being carried out, and again when it is another one,
// until the run has ended or was deleted, or ctx ends. It is empty where none is. The error is ToolExecutionError
// store_unavailable.
func (t Terminals) UnderWay(ctx context.Context, uid, runID string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		last, first := "", true
		for w, err := range t.Loop.Watch(ctx, uid, runID) {
			if fault.Is(err, fault.Auth, fault.CodeNotFound) {
				return
			}
			if err != nil {
				yield("", err)
				return
			}
			now := w.underWay()
			if (first || now != last) && !yield(now, nil) || w.Ended() {
				return
			}
			last, first = now, false
		}
	}
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
