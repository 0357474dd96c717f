package unit

import (
	"context"
	"errors"
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/observe"
	"github.com/countersign-run/countersign/shared/store"
)

// Limits of one transition: the number of retries after a lost race, and after a failure of the store.
const (
	maxRaces  = 200
	maxOutage = 4
)

// Transition decides what follows from the run's present state and commits it. decide reads the run and fills the tx.
// It must have no other effect, because it is called again, on fresh documents, whenever the commit loses a race. An
// empty tx costs no commit. A commit whose answer was lost is handled in the same way: the run is read again, and a
// decision that was committed already leaves the tx empty. The error is that of decide, or a store's error in the form
// of [StoreError].
func (ex *Execution) Transition(ctx context.Context, decide func(*Tx) error) error {
	races, outages := 0, 0
	for {
		tx, err := ex.Decide(ctx, decide)
		if err != nil {
			return err
		}
		if tx.empty() {
			return nil
		}
		err = ex.commitAhead(ctx, tx, races+outages == 0)
		switch {
		case err == nil:
			tx.measure()
			tx.notifyUpdates()
			return nil
		case errors.Is(err, store.ErrConflict) && races < maxRaces:
			races++
		case errors.Is(err, store.ErrUnavailable) && (ex.MustCommit || outages < maxOutage):
			outages++
		default:
			return StoreError(err)
		}
		ex.CountRetry(observe.RetryCommit)
		if err := ex.backOffCommit(ctx, races+outages*10); err != nil {
			return StoreError(err)
		}
		known := ex.Run.ID != ""
		if err := ex.reload(ctx); err != nil {
			outages++
			if !ex.MustCommit && outages > maxOutage {
				return err
			}
		}
		if known && ex.Run.ID == "" { // the run was deleted: there is nothing left to decide
			return fault.NotFound()
		}
	}
}

// Decide calls decide until it fills a tx, and reads the documents that decide asks for.
func (ex *Execution) Decide(ctx context.Context, decide func(*Tx) error) (*Tx, error) {
	for {
		tx, err := ex.newTx()
		if err != nil {
			return nil, err
		}
		err = decide(tx)
		if err == nil {
			err = tx.prepareWrites()
		}
		if again, err := ex.readMissing(ctx, err); !again {
			return tx, err
		}
	}
}

// readMissing reads the documents that a decision needs, and reports whether the decision must be made again. It
// returns err if err is about something else.
func (ex *Execution) readMissing(ctx context.Context, err error) (again bool, _ error) {
	var need errMissingDocs
	if !errors.As(err, &need) {
		return false, err
	}
	err = ex.Read(ctx, ex.prefetch(need)...)
	return err == nil, err
}

// backOffCommit waits before try n, for a random part of a time that grows to half a second. Racing processes then
// spread out, and a store that is down is not overloaded.
func (ex *Execution) backOffCommit(ctx context.Context, n int) error {
	limit := min(500*time.Millisecond, time.Duration(n)*4*time.Millisecond)
	return ex.Sleep(ctx, ex.Jitter(limit))
}
