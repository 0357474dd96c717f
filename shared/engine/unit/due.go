package unit

import (
	"cmp"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/notify/event"
)

// elsewhereGrace is how long a run that no process advanced in time is left to processes that know its agent.
const elsewhereGrace = 10 * time.Minute

func earlier(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}

// due returns when a process must look at the run again, or zero if none must. The run is due soon if it has
// unpublished events, or cards to reopen, and no lease.
func due(tx *Tx) (time.Time, error) {
	at, err := dueToMove(tx)
	if err != nil || tx.Run.Lease.Owner != "" || !tx.HasUnpublished() && len(tx.Run.Reopens) == 0 {
		return at, err
	}
	soon := tx.Now.Add(cmp.Or(tx.RetryIn, PublishGrace))
	if at.IsZero() {
		return soon, nil
	}
	return earlier(at, soon), nil
}

// HasUnpublished reports whether the run has events that must be published.
func (ex *Execution) HasUnpublished() bool {
	return ex.Publisher != nil && ex.Run.ID != "" && event.Publishes(ex.Run.Delivered, ex.State, ex.Events)
}

// HasUnpublished reports whether this transition leaves events of the run that must be published.
func (tx *Tx) HasUnpublished() bool {
	return tx.Ex.Publisher != nil &&
		(event.Publishes(tx.Run.Delivered, tx.State, tx.Ex.Events) ||
			event.Publishes(tx.Run.Delivered, tx.State, tx.events))
}

// dueToMove returns when the run must be advanced or its user be reminded, or zero if the run has ended.
func dueToMove(tx *Tx) (time.Time, error) {
	switch {
	case tx.State.End != nil && !run.NeedsDisposal(tx.State):
		return time.Time{}, nil
	case tx.Run.Lease.Owner != "":
		return tx.Run.Lease.Until, nil
	}
	at, held := tx.Run.Deadline, run.HeldUntil(tx.State, tx.Now)
	later := run.PostponedUntil(tx.State, tx.Now)
	switch st, _ := tx.Next(); {
	case tx.DueIn > 0:
		return tx.Now.Add(tx.DueIn), nil
	case tx.Left:
		return earlier(at, tx.Now.Add(elsewhereGrace)), nil
	case tx.DueNow || len(tx.State.Open()) == 0 && held.IsZero() && later.IsZero() || st != run.StepWait:
		return tx.Now.Add(PublishGrace), nil
	}
	if !held.IsZero() { // the receiver of the resume sleeps until then
		at = earlier(at, held.Add(PublishGrace))
	}
	if !later.IsZero() {
		at = earlier(at, later)
	}
	for _, a := range tx.State.Open() {
		if a.Kind != run.KindReview && a.ExpiresAt.Before(at) { // a review ends with the run
			at = a.ExpiresAt
		}
	}
	return dueToRemind(tx, at)
}

// dueToRemind returns the earlier of at and the time of the user's next reminder about this run. If that time has
// passed, an attempt was just made, and the next is later.
func dueToRemind(tx *Tx, at time.Time) (time.Time, error) {
	if !tx.Ex.Reminding.On() {
		return at, nil
	}
	u, err := tx.User()
	if err != nil {
		return at, err
	}
	for _, a := range tx.State.Open() {
		due := tx.Ex.Reminding.At(u, a.UpdatedAt) // when it was requested: nothing has changed since
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
