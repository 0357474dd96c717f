package loop

import (
	"context"
	"strconv"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/audit"
)

// Limits of a removal: the number of tries, the longest pause between two tries, and the duration of one try. Pauses
// take 1, 2, 4 … minutes, about six hours in total.
const (
	maxCleanUps  = 12
	longestPause = time.Hour
	cleanUpTime  = 30 * time.Second
)

var errNoEngine = fault.New(fault.Tool, fault.CodeInternal,
	"No function here has the tool that could remove the things that this run created.")

// cleanUp removes the things that the calls of an ended run created, and records that. It needs no approval, because
// the run's tools remove only things of the run. Runs that created nothing skip this step.
func cleanUp(ctx context.Context, ex *unit.Execution) error {
	if ex.LostLeases(ex.Run) >= run.MaxAttempts {
		return recordCleaned(ctx, ex, 0, run.ErrAttempts)
	}
	if err := ex.Claim(ctx, cleanUpTime); err != nil {
		return err
	}
	removed, err := removeLeft(ctx, ex)
	if err != nil {
		return putOff(ctx, ex, err)
	}
	return recordCleaned(ctx, ex, removed, nil)
}

// removeLeft has each tool remove the things that its calls created.
func removeLeft(ctx context.Context, ex *unit.Execution) (removed int, err error) {
	ctx, cancel := context.WithTimeout(ctx, cleanUpTime)
	defer cancel()
	for _, name := range run.ToDispose(ex.State) {
		t := ex.Toolbox.Tools[name]
		if t == nil || !t.Disposes {
			return removed, errNoEngine
		}
		n, err := t.Dispose(ctx, ex.Run.ToolCall("", nil, tool.Place{}))
		ex.LogPanic(ctx, name, err)
		if removed += n; err != nil {
			return removed, err
		}
	}
	return removed, nil
}

// putOff records that a removal has failed, and makes the run due later. After the last try, removal is given up.
func putOff(ctx context.Context, ex *unit.Execution, why error) error {
	if ex.Run.CleanUps+1 >= maxCleanUps {
		return recordCleaned(ctx, ex, 0, why)
	}
	ex.Log.WarnContext(ctx, "things that a run created could not be removed; the removal is tried again later",
		"counter", "clean_up_failed", "runId", ex.ID, "tries", ex.Run.CleanUps+1, "error", fault.As(why))
	ctx, cancel := unit.Detached(ctx)
	defer cancel()
	tries := ex.Run.CleanUps + 1
	return ex.Transition(ctx, func(tx *unit.Tx) error {
		if !run.NeedsDisposal(tx.State) || tx.Run.CleanUps >= tries || tx.Run.Lease.Held(ex.Owner, tx.Now) {
			return nil
		}
		tx.DueIn = min(time.Minute<<tx.Run.CleanUps, longestPause)
		tx.Run.CleanUps, tx.Changed = tries, true
		return nil
	})
}

// recordCleaned records the result of the removal in the run and its audit log.
func recordCleaned(ctx context.Context, ex *unit.Execution, removed int, why error) error {
	c := &run.Disposed{Removed: removed}
	if why != nil {
		c.Error = run.ErrorInfoOf(why)
		ex.Log.ErrorContext(ctx, "things that a run created may be left behind", "counter", "clean_up_given_up",
			"runId", ex.ID, "error", fault.As(why))
	}
	ctx, cancel := unit.Detached(ctx)
	defer cancel()
	return ex.Transition(ctx, func(tx *unit.Tx) error {
		if !run.NeedsDisposal(tx.State) || tx.Run.Lease.Held(ex.Owner, tx.Now) {
			return nil
		}
		if err := tx.AddEvent(run.Event{Type: run.RunCleaned, Cleaned: c}); err != nil {
			return err
		}
		tx.AddAudit(audit.CleanedUp, nil, func(e *audit.Entry) {
			e.Facts = tool.Facts{"removed": strconv.Itoa(removed)}
			unit.SetErrorInfo(e, c.Error)
		})
		return nil
	})
}
