package loop

import (
	"github.com/countersign-run/countersign/shared/approval"
	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/journal"
	"github.com/countersign-run/countersign/shared/run"
)

// takeBack has the run that did what the call takes back name the run that is begun for it, in the same commit.
func takeBack(tx *journal.Tx, c *Call, at approval.Placement) error {
	if at.Err != nil {
		return at.Err
	}
	if c.In.Label != at.Label || c.In.Name != at.Name { // linked anew, the same account has another id
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
	journal.Put(tx, path, of)
	return nil
}
