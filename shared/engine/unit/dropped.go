package unit

import (
	"context"
	"errors"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
)

// CountDropped counts the dropped calls that no commit has counted in their user's document, unless the user is gone.
func (ex *Execution) CountDropped(ctx context.Context) {
	if ex.discarded == 0 || ex.UserLimits.None() {
		return
	}
	ctx, cancel := Detached(ctx)
	defer cancel()
	for try := 1; ; try++ {
		err := ex.countDiscarded(ctx)
		lost := errors.Is(err, store.ErrConflict) && try < maxRaces
		if lost && ex.backOffCommit(ctx, try) == nil {
			continue
		}
		if err != nil {
			ex.Log.WarnContext(ctx, "dropped model calls could not be counted", "uid", ex.discardedFor,
				"calls", ex.discarded, "error", err)
		}
		return
	}
}

func (ex *Execution) countDiscarded(ctx context.Context) error {
	path := document.UserPath(ex.discardedFor)
	delete(ex.Docs, path)
	docs, err := ex.Store.Get(ctx, path)
	if err != nil || !docs[0].Exists() {
		return err
	}
	var u run.User
	if err := document.Decode(docs[0], &u); err != nil || u.Deleting {
		return err
	}
	u.Usage.CountUse(ex.Now(), ex.discarded, 0)
	w, err := document.Put(docs[0], docs[0].Fields, u)
	if err != nil {
		return err
	}
	if _, err = ex.Store.Commit(ctx, w); err == nil {
		ex.discarded = 0
	}
	return err
}
