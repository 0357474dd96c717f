package approval

import (
	"encoding/json"
	"slices"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// A candidate is a decision that is not recorded yet, with the approval and the call that it is about.
type candidate struct {
	Resolution
	tx *unit.Tx
	ap *run.Approval
	a  *run.Action // nil if the run does not have the call
	t  *tool.Tool  // nil if the agent does not have the tool
	at CurrentPlace

	args    json.RawMessage // the arguments that the decision approves: the stored ones, or the user's edits
	hash    string          // of args before the tool completes them; recognises a repeated decision
	invalid error           // why the tool does not accept the edits
}

// A check returns the reason why a decision cannot be recorded now, or nil.
type check func(c *candidate) error

// The parts of the table's rows.
var (
	every = []check{owned, enabled, rejectsEarlier}          // for every decision, before its own row
	waits = []check{readable, undecided, unexpired, waiting} // the call still waits for a decision
	edits = []check{readable, readEdits, undecided, unexpired, waiting, exact, seen, current}

	no     = slices.Concat(waits, []check{seen, notStrict, commented})
	yes    = slices.Concat(waits, []check{seen, current, notStrict, commented, permitted, strongly})
	always = slices.Concat(waits, []check{askedOnce, exact, seen, current, notStrict, commented, permitted, storable,
		strongly})
	edited = slices.Concat(edits, []check{notStrict, commented, editsFit, permitted, withinDay, strongly})

	confirmed       = slices.Concat(waits, []check{seen, current, hashGiven, commented, permitted, strongly})
	confirmedEdited = slices.Concat(edits, []check{hashGiven, commented, editsFit, permitted, strongly})
	refined         = slices.Concat(waits, []check{seen, notStrict, refinable, commented})

	inapplicable = slices.Concat(waits, []check{askedOnce, exact, notApplicable})
)

// checks holds the checks of each decision about each kind of approval, in the order in which they are made. A decision
// without a row is inapplicable.
var checks = map[run.Kind]map[run.Decision][]check{
	run.KindApproval: {
		run.Reject:               no,
		run.TakeBack:             no,
		run.ApproveOnce:          yes,
		run.ApproveAlways:        always,
		run.ApproveAlwaysCommand: always,
		run.ApproveEdited:        edited,
		run.Undo:                 {undoable},
	},
	run.KindReview: {
		run.ConfirmDone: no,
		run.StartNew:    yes,
		run.Undo:        {undoable},
	},
	run.KindPlan: {
		run.Reject:        no,
		run.Refine:        refined,
		run.ApproveOnce:   confirmed,
		run.ApproveEdited: confirmedEdited,
		run.Undo:          {undoable},
	},
}

// Check checks a decision against the approval's present state, and returns the arguments that it approves.
func Check(ex *unit.Execution, tx *unit.Tx, ap *run.Approval, r Resolution, at CurrentPlace) (json.RawMessage,
	error) {
	c := &candidate{Resolution: r, tx: tx, ap: ap, at: at, a: tx.State.Action(ap.ActionID),
		t: ex.Toolbox.Proposed(tx.Run, tx.State, ap.Tool), args: ap.Args, hash: ap.ArgsHash}
	row, applies := checks[ap.Kind][r.Decision]
	if !applies {
		row = inapplicable
	}
	for _, check := range slices.Concat(every, row) {
		if err := check(c); err != nil {
			return nil, err
		}
	}
	if r.Decision == run.ApproveEdited {
		ap.EditHash, ap.SeenHash = c.hash, ap.ArgsHash
	}
	return c.args, nil
}

func owned(c *candidate) error {
	if c.ap.UID != c.UID {
		return fault.NotFound()
	}
	return nil
}

func enabled(c *candidate) error {
	u, err := c.tx.User()
	if err != nil {
		return err
	}
	return u.CheckEnabled()
}

// rejectsEarlier checks that only an approval rejects earlier cards, and only cards that the approved card names.
func rejectsEarlier(c *candidate) error {
	n := len(c.Rejects)
	switch {
	case n > 0 && (c.ap.Kind != run.KindApproval || !executes(c.Decision)):
		return fault.Invalid("rejects", "only an approval can reject earlier cards")
	case n > run.MaxEarlier:
		return fault.Invalid("rejects", "%d approvals; the limit is %d", n, run.MaxEarlier)
	}
	for _, id := range c.Rejects {
		if !slices.ContainsFunc(c.ap.InsteadOf, func(e run.EarlierCard) bool { return e.ApprovalID == id }) {
			return fault.Invalid("rejects", "the approved card does not list this one in insteadOf")
		}
	}
	return nil
}

func notApplicable(*candidate) error {
	return fault.New(fault.Policy, fault.CodeNotApplicable, "This decision does not apply here.")
}
