package loop

import (
	"context"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// endOverdue ends a run that nothing but the time ends, as the sweep would do later. It reports whether the run has
// ended. A run that cannot be read or written stays open, and the sweep reports its error.
func endOverdue(ctx context.Context, ex *unit.Execution) bool {
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
