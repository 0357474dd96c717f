package outbox

import (
	"context"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/document"
)

// Remind sends a reminder for a waiting run that is overdue, and sets the run's next due time. A failure is only
// logged, and the run is looked at again. A run that is overdue because reminders were switched off also gets its next
// due time; otherwise it would be quarantined.
func Remind(ctx context.Context, ex *unit.Execution) {
	overdue := ex.Counted || !document.RunFieldsOf(ex.Docs[document.RunPath(ex.ID)]).Due.After(ex.Now())
	// another process or Publish sets the due time
	others := ex.Reminders == nil && (ex.Reminding.On() || ex.HasUnpublished())
	if ex.State.End != nil || !overdue || others {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), remindTime)
	defer cancel()
	var err error
	if ex.Reminders != nil {
		err = ex.Reminders.Remind(ctx, ex.Run.UID, ex.Reminding)
	}
	if err != nil {
		ex.Log.WarnContext(ctx, "a reminder of waiting approvals could not be sent and is retried later", "counter",
			"reminder_failed", "runId", ex.ID, "error", err)
	}
	if err = ex.Read(ctx, document.UserPath(ex.Run.UID)); err == nil { // it contains the state of the reminders
		err = ex.Transition(ctx, func(tx *unit.Tx) error {
			st, _ := tx.Next()
			tx.KeepLease = st != run.StepWait || tx.Run.Lease.Held(ex.Owner, tx.Now)
			tx.Changed = !tx.KeepLease
			return nil
		})
	}
	if err != nil {
		ex.Log.WarnContext(ctx, "the next due time of a waiting run could not be set; the run is looked at again",
			"runId", ex.ID, "error", err)
	}
}

// remindTime is the maximum duration of a reminder and its commits.
const remindTime = 50 * time.Second
