package journal

import (
	"cmp"
	"time"

	"github.com/countersign-run/countersign/shared/notice"
	"github.com/countersign-run/countersign/shared/run"
)

// elsewhereGrace is how long a run that nobody moved in time is left to whoever knows its agent.
const elsewhereGrace = 10 * time.Minute

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// due returns when the run must be looked at again, or zero where it need not be: soon, where nobody holds it and
// others have not been told of it.
func due(tx *Tx) (time.Time, error) {
	at, err := dueToMove(tx)
	if err != nil || tx.Run.Lease.Owner != "" || !untold(tx) {
		return at, err
	}
	soon := tx.Now.Add(cmp.Or(tx.TellIn, publishGrace))
	if at.IsZero() {
		return soon, nil
	}
	return earlier(at, soon), nil
}

// untold reports whether there is, after this transition, anything about the run that others have not been told.
func untold(tx *Tx) bool {
	return tx.Ex.Notices != nil &&
		(notice.Tells(tx.Run.ToldTo, tx.State, tx.Ex.Events) || notice.Tells(tx.Run.ToldTo, tx.State, tx.events))
}

// dueToMove returns when the run must be moved, or its user be reminded of it, or zero where it has ended.
func dueToMove(tx *Tx) (time.Time, error) {
	switch {
	case tx.State.End != nil && !run.Unclean(tx.State):
		return time.Time{}, nil
	case tx.Run.Lease.Owner != "":
		return tx.Run.Lease.Until, nil
	}
	at, held := tx.Run.Deadline, run.HeldUntil(tx.State, tx.Now)
	switch st, _ := tx.Next(); {
	case tx.DueIn > 0:
		return tx.Now.Add(tx.DueIn), nil
	case tx.Left:
		return earlier(at, tx.Now.Add(elsewhereGrace)), nil
	case tx.DueNow || len(tx.State.Open()) == 0 && held.IsZero() || st != run.StepWait:
		return tx.Now.Add(publishGrace), nil
	}
	if !held.IsZero() { // whoever got the resume sleeps until then
		at = earlier(at, held.Add(publishGrace))
	}
	for _, a := range tx.State.Open() {
		if a.Kind != run.KindReview && a.ExpiresAt.Before(at) { // a review ends with the run
			at = a.ExpiresAt
		}
	}
	return dueToRemind(tx, at)
}

// dueToRemind returns the earlier of the time and of when the run's user is to be reminded of what it waits for. Where
// that is over, somebody has just tried, and tries again later.
func dueToRemind(tx *Tx, at time.Time) (time.Time, error) {
	if !tx.Ex.Reminding.On() {
		return at, nil
	}
	u, err := tx.User()
	if err != nil {
		return at, err
	}
	for _, a := range tx.State.Open() {
		due := tx.Ex.Reminding.At(u, a.UpdatedAt) // when it was asked: nothing has become of it since
		if a.ApprovalID == "" || due.IsZero() {
			continue
		}
		if !due.After(tx.Now) {
			due = tx.Now.Add(tx.Ex.Reminding.After)
		}
		at = earlier(at, due)
	}
	return at, nil
}
