package journal

import (
	"context"
	"time"

	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/run"
)

// Reminders mail users what has waited for a while (package reminder).
type Reminders interface {
	// Remind mails the user what waits, unless it is too soon for that, or another process does it.
	Remind(ctx context.Context, uid string, when run.Reminding) error
}

// Remind has the user be reminded of a run that waits and is overdue, and makes it due for what comes next. A failure
// is only logged: the run is looked at again. A run that is overdue for nothing, because reminders were switched off,
// is due for what comes next too: else it would be put aside.
func Remind(ctx context.Context, ex *Execution) {
	overdue := ex.Counted || !document.RunFieldsOf(ex.Docs[document.RunPath(ex.ID)]).Due.After(ex.Now())
	others := ex.Reminders == nil && (ex.Reminding.On() || Untold(ex)) // somebody else sees to it, or Tell does
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
		ex.Log.WarnContext(ctx, "a user could not be reminded of what waits, which is tried again later", "counter",
			"reminder_failed", "runId", ex.ID, "error", err)
	}
	if err = ex.Read(ctx, document.UserPath(ex.Run.UID)); err == nil { // it says of whom they were reminded
		err = ex.Transition(ctx, func(tx *Tx) error {
			st, _ := tx.Next()
			tx.KeepLease = st != run.StepWait || tx.Run.Lease.Held(ex.Owner, tx.Now)
			tx.Changed = !tx.KeepLease
			return nil
		})
	}
	if err != nil {
		ex.Log.WarnContext(ctx, "a run is not due for what comes next, and will be looked at again", "runId", ex.ID,
			"error", err)
	}
}

// remindTime is how long a reminder and its commits may take.
const remindTime = 50 * time.Second
