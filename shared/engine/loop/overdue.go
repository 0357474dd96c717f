package loop

import (
	"context"

	"github.com/countersign-run/countersign/shared/agent/run"
)

// EndOverdue ends a run that nothing but the time ends, as the sweep would do later. It reports whether the run has
// ended. A run that cannot be read or written stays open, and the sweep reports its error.
func (l *Loop) EndOverdue(ctx context.Context, runID string) bool {
	ex := l.NewExecution(runID, nil)
	if ex.Load(ctx) != nil || !dueByClock(ex) {
		return false
	}
	tx, err := ex.Decide(ctx, applyClock)
	if err != nil || tx.State.End == nil {
		return false
	}
	v, err := advance(ctx, ex)
	return err == nil && (v.Status == run.Completed || v.Status == run.Failed)
}
