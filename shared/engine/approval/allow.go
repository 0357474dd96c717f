package approval

import (
	"encoding/json"
	"time"

	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// storable checks that the decision's entries fit into the user's allowlist.
func storable(c *candidate) error {
	_, err := alwaysAllowEntries(c.tx, c.t, c.ap.Place, c.args, c.Decision)
	return err
}

// alwaysAllowEntries returns the allowlist entries that the decision stores: the exact addresses with the place that
// the card shows, or the exact call. They are for this tool and this user. Most decisions store none.
func alwaysAllowEntries(tx *unit.Tx, t *tool.Tool, in tool.Place, args json.RawMessage,
	decision run.Decision) ([]policy.Entry, error) {
	var entries []policy.Entry
	var err error
	switch decision {
	case run.ApproveAlways:
		entries, err = recipientEntries(tx, t, in, args)
	case run.ApproveAlwaysCommand:
		entries, err = callEntry(tx, t, args)
	}
	if err != nil || len(entries) == 0 {
		return nil, err
	}
	u, err := tx.User()
	if err != nil {
		return nil, err
	}
	if len(u.Allow)+len(entries) > run.MaxAllowEntries {
		return nil, fault.New(fault.Policy, "allowlist_full",
			"You have reached the limit of %d entries that you always allow.",
			run.MaxAllowEntries)
	}
	return entries, nil
}

func recipientEntries(tx *unit.Tx, t *tool.Tool, in tool.Place, args json.RawMessage) ([]policy.Entry, error) {
	targets, err := t.Targets(args)
	if err != nil {
		return nil, err
	}
	return tx.Ex.Rules.Entries(tx.Run.UID, t.Name, in, targets, tx.Now)
}

func callEntry(tx *unit.Tx, t *tool.Tool, args json.RawMessage) ([]policy.Entry, error) {
	verdict, err := Verdict(tx, t, "", tool.Place{}, args)
	if err != nil {
		return nil, err
	}
	e, err := tx.Ex.Rules.CallEntry(tx.Run.UID, t.Name, verdict.CallPolicy, tx.Now)
	return []policy.Entry{e}, err
}

// newEntries returns the decision's entries of the user's allowlist: the exact recipients, or the exact call. If the
// approval has an undo window, its entries count from the end of the window.
func newEntries(tx *unit.Tx, ap *run.Approval, t *tool.Tool, args json.RawMessage, decision run.Decision,
	held time.Time) ([]policy.Entry, error) {
	entries, err := alwaysAllowEntries(tx, t, ap.Place, args, decision)
	for i := range entries {
		entries[i].From, entries[i].Approval = held, ap.ID
	}
	return entries, err
}

// alwaysAllow adds the entries to the user's allowlist.
func alwaysAllow(tx *unit.Tx, entries []policy.Entry) error {
	if len(entries) == 0 {
		return nil
	}
	return tx.UpdateUser(func(u *run.User) { u.AlwaysAllow(entries, tx.Now) })
}
