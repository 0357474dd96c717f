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
func takeBack(tx *journal.Tx, c *Call, at approval.Placement) error {
	if at.Err != nil {
		return at.Err
	}
	if c.In.Label != at.Label || c.In.Name != at.Name { // the same account has another ID after it is linked again
		return fault.New(fault.Policy, fault.CodeStaleView,
			"This was done in another account than the one that is linked now. Please link that one again.")
	}
	path := document.RunPath(c.Compensates.RunID)
	var of run.Run
	if doc, err := tx.Doc(path, &of); err != nil || !doc.Exists() || of.UID != tx.Run.UID {
		return fault.OrNotFound(err)
	}
	if of.TakenBack == nil {
		of.TakenBack = map[string]string{}
	}
	of.TakenBack[c.Compensates.ActionID] = tx.Run.ID
	tx.Put(path, of)
	return nil
}
