package journal

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/store"
)

// Bounds of one transition: how often a lost race is tried again, and how often a store that does not answer.
const (
	maxRaces  = 200
	maxOutage = 4
)

// Transition decides what follows from the run's present state and commits it. decide looks at the run and fills the
// tx; it must do nothing else, because it is called again, on fresh documents, whenever the commit loses a race. A
// decision that leaves the tx empty costs no commit. A commit whose answer was lost is settled in the same way: the run
// is read again, and a decision that was committed already leaves the tx empty.
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
		err = tx.commit(ctx)
		switch {
		case err == nil:
			measure(tx)
			tx.notifyUpdates()
			return nil
		case errors.Is(err, store.ErrConflict) && races < maxRaces:
			races++
		case errors.Is(err, store.ErrUnavailable) && (ex.MustCommit || outages < maxOutage):
			outages++
		default:
			return StoreError(err)
		}
		CountRetry(ex.Env, retryCommit)
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
		if known && ex.Run.ID == "" { // deleted: there is nothing left to decide about
			return fault.NotFound()
		}
	}
}

// Decide fills a tx, reading the documents that the decision asks for.
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
		var need errMissingDocs
		if !errors.As(err, &need) {
			return tx, err
		}
		if err := ex.Read(ctx, ex.prefetch(need)...); err != nil {
			return nil, err
		}
	}
}

// prefetch adds to the documents that are needed those that the run's later steps will need, the user's document and
// the thread, so that one round trip serves for both.
func (ex *Execution) prefetch(need []string) []string {
	for _, p := range []string{document.UserPath(ex.Run.UID), document.ThreadPath(ex.Run.ThreadID)} {
		if _, ok := ex.Docs[p]; !ok && ex.Run.ID != "" && !slices.Contains(need, p) {
			need = append(need, p)
		}
	}
	return need
}

// reload reads all mutable documents of the cache again, and folds the run's events.
func (ex *Execution) reload(ctx context.Context) error {
	paths := []string{document.RunPath(ex.ID)}
	for p := range ex.Docs {
		if p != paths[0] && !document.IsChunk(p) {
			paths = append(paths, p)
		}
	}
	if err := ex.Read(ctx, paths...); err != nil {
		return err
	}
	return ex.fold(ctx)
}

// backOffCommit waits before try n: a random part of a time that grows to half a second, so that racing processes
// spread and a store that is down is not hammered.
func (ex *Execution) backOffCommit(ctx context.Context, n int) error {
	limit := min(500*time.Millisecond, time.Duration(n)*4*time.Millisecond)
	return ex.Sleep(ctx, ex.Jitter(limit))
}
