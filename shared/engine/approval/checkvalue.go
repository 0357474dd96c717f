package approval

import (
	"strings"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// The checks below examine the values that come with a decision, and what the policy says about them.

// The lengths of a comment, in bytes: the limit, and how much is stored of a comment that does not ask for another
// plan.
const (
	maxComment     = 32 << 10
	maxKeptComment = 2000
)

func commented(c *candidate) error {
	if len(c.Comment) > maxComment {
		return fault.Invalid("comment", "%d bytes; the limit is %d", len(c.Comment), maxComment)
	}
	return nil
}

func hashGiven(c *candidate) error {
	if c.ArgsHash == "" {
		return fault.Invalid("argsHash", "the hash of the plan that you saw is required")
	}
	return nil
}

func notStrict(c *candidate) error {
	if c.Strict {
		return fault.Invalid("strict", "only the confirmation of a plan can be strict")
	}
	return nil
}

// refinable checks that the user says what to change, and that the plan may have another revision.
func refinable(c *candidate) error {
	switch {
	case strings.TrimSpace(c.Comment) == "":
		return fault.Invalid("comment", "say what should be different")
	case c.tx.State.Plan.Revision >= plan.MaxRevisions:
		return fault.New(fault.Policy, fault.CodeTooMany,
			"There were %d revisions, which is the limit. Please confirm this one or reject it.", plan.MaxRevisions)
	}
	return nil
}

// readEdits reads the user's arguments, with the values that the tool derives from them. It returns no error, because
// the hash must recognise a repeated decision first; editsFit does.
func readEdits(c *candidate) error {
	if c.t == nil {
		return nil
	}
	args, err := c.t.Normalize(c.EditedArgs)
	if err != nil {
		f := *fault.As(err)
		f.Field = strings.TrimSuffix("editedArgs/"+f.Field, "/")
		c.args, c.hash, c.invalid = nil, "", &f
		return nil
	}
	c.hash = run.ArgsHash(c.ap.UID, c.t.Spec, c.ap.Place, args)
	if c.args = args; c.ap.Status == run.ApprovalOpen {
		c.args, c.invalid = c.t.Revise(c.ap.Args, args)
	}
	return nil
}

func editsFit(c *candidate) error { return c.invalid }

// withinDay checks that the daily limit allows the effects that the user's edits add.
func withinDay(c *candidate) error {
	u, err := c.tx.User()
	if err != nil {
		return err
	}
	return CheckEffects(c.tx, u, Uncounted(c.tx, c.t, c.a, c.args))
}

// permitted checks that the policy does not deny the call: a deny overrules the user's approval.
func permitted(c *candidate) error {
	v, err := Verdict(c.tx, c.t, "", tool.Place{}, c.args)
	if err != nil {
		return err
	}
	if v.Mode == policy.Deny {
		return fault.New(fault.Policy, "denied", "%s", v.Reason)
	}
	return nil
}
