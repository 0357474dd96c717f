package loop

import (
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/journal"
	"github.com/countersign-run/countersign/shared/store/document"
)

// takeBack records the new run in the run whose action it undoes, in the same commit. It returns PolicyError stale_view
// if a different account is linked now.
func takeBack(tx *journal.Tx, u *Undo, at approval.Placement) error {
	if at.Err != nil {
		return at.Err
	}
	// the same account has another ID after it is linked again
	if u.Place.Label != at.Label || u.Place.Name != at.Name {
		return fault.New(fault.Policy, fault.CodeStaleView,
			"This was done in another account than the one that is linked now. Please link that one again.")
	}
	path := document.RunPath(u.Action.RunID)
	var of run.Run
	if doc, err := tx.Doc(path, &of); err != nil || !doc.Exists() || of.UID != tx.Run.UID {
		return fault.OrNotFound(err)
	}
	if of.TakenBack == nil {
		of.TakenBack = map[string]string{}
	}
	of.TakenBack[u.Action.ActionID] = tx.Run.ID
	tx.Put(path, of)
	return nil
}
