package approval

import (
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
)

// strongly checks that a passkey confirms the decision, if it needs one.
func strongly(c *candidate) error {
	if c.tx.Ex.Strong == nil || !c.Decision.Permits() {
		return nil
	}
	d := &run.Decided{ApprovalID: c.ap.ID, Decision: c.Decision, By: c.UID, ArgsHash: c.ap.ArgsHash}
	if c.Decision == run.ApproveEdited {
		d.EditedArgs, d.ArgsHash = c.args, run.ArgsHash(c.ap.UID, c.t.Spec, c.ap.Place, c.args)
	}
	entries, err := newEntries(c.tx, c.ap, c.t, c.args, c.Decision, time.Time{})
	if err != nil {
		return err
	}
	_, err = confirm(c.tx, c.ap, d, c.Resolution, c.args, entries)
	return err
}
