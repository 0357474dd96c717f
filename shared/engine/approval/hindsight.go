package approval

import (
	"slices"

	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// NotJudged is the reason why a recorded call cannot be judged again.
type NotJudged string

// The values of NotJudged.
const (
	BeforePolicy NotJudged = "refused_before_policy" // such as wrong arguments, or a restriction by an earlier call
	NoPolicy     NotJudged = "always_asked"          // whatever the policy, such as about a plan
	NoAgent      NotJudged = "agent_unknown"         // this process does not know the run's agent
	NoTool       NotJudged = "tool_unknown"          // this process does not know the tool
	NotFitting   NotJudged = "arguments_outdated"    // the tool no longer accepts the recorded arguments
	NoHost       NotJudged = "host_gone"             // the host of the command, or its terminal, was deleted
)

// Error implements error.
func (n NotJudged) Error() string { return "approval: the call cannot be judged again: " + string(n) }

// RuleNotOffered is the rule that denies a recorded call if its agent no longer has the tool.
const RuleNotOffered = "tool_not_offered"

// Again judges a recorded call with the rules, tools and agents of the transition's environment. tx has the run as it
// was before the call ([unit.Execution.Replay]), in an environment that no other goroutine uses. The user's permissions
// are those that are known to have existed (entriesThen). The error can be a [NotJudged].
func Again(tx *unit.Tx, id string, call run.ProposedCall) (Judgement, error) {
	switch {
	case call.Rule == policy.RuleNarrowed, call.Rule == "" && call.PolicyDecision == string(policy.Deny):
		return Judgement{}, BeforePolicy
	case call.Rule == "":
		return Judgement{}, NoPolicy
	}
	if tx.Ex.Agents.Get(tx.Run.Agent) == nil {
		return Judgement{}, NoAgent
	}
	t := tx.ToolIn(call.Tool, call.UserInitiated)
	switch {
	case t == nil && tx.Ex.Toolbox.Proposed(tx.Run, tx.State, call.Tool) == nil:
		return Judgement{}, NoTool
	case t == nil:
		return Judgement{Decision: policy.Decision{Mode: policy.Deny, Rule: RuleNotOffered}}, nil
	}
	targets, err := t.Targets(call.Args)
	if err != nil {
		return Judgement{}, NotFitting
	}
	if err := asThen(tx, t, call, targets); err != nil {
		return Judgement{}, err
	}
	if ring := tx.Ex.Decisions; call.Grant != "" || len(call.Allowed) > 0 || covered(tx, call) {
		tx.Ex.Decisions = nil // the permission counted; its signature, or the key, may be gone
		defer func() { tx.Ex.Decisions = ring }()
	}
	v, err := judge(tx, t, id, call)
	if err == nil && v.Rule == ruleUnknown && call.Rule != ruleUnknown {
		err = NoHost
	}
	return v, err
}

// asThen gives the user's document the permissions and the recent effects of the time of the call.
func asThen(tx *unit.Tx, t *tool.Tool, call run.ProposedCall, targets []tool.Target) error {
	u, err := tx.User()
	if err != nil {
		return err
	}
	then := *u
	if then.Allow, err = entriesThen(tx, t, call, targets, u.Allow); err != nil {
		return err
	}
	if then.Recent = nil; call.Rule == policy.RuleRepeated {
		then.NoteAllowed(tx.AllowedNow("", run.Effect{UID: tx.Run.UID, Tool: t.Name, Place: call.Place, Args: call.Args,
			ArgsHash: call.ArgsHash}))
	}
	tx.AsUser(&then)
	return nil
}

// covered reports whether the record shows that always-allow entries covered the call, which needed approval for
// another reason. In a run with a plan, a grant may have covered it.
func covered(tx *unit.Tx, call run.ProposedCall) bool {
	switch call.Rule {
	case policy.RuleUsedUp:
		return true
	case policy.RuleTainted, policy.RuleRepeated, policy.RuleUnusual:
		return tx.State.Plan == nil
	}
	return false
}

// entriesThen returns the always-allow entries that are known to have existed at the time of the call: those that
// covered the call according to its record, even if the user has removed them since, and those that still exist and are
// older than the call.
func entriesThen(tx *unit.Tx, t *tool.Tool, call run.ProposedCall, targets []tool.Target,
	now []policy.Entry) (then []policy.Entry, err error) {
	ruling, _, missing := tx.RuleIn(t, call.Args)
	if missing != nil {
		return nil, missing
	}
	var free policy.Rules
	made, _ := free.Entries(tx.Run.UID, t.Name, call.Place, targets, tx.Now)
	if e, err := free.CallEntry(tx.Run.UID, t.Name, ruling, tx.Now); err == nil {
		made = append(made, e)
	}
	usedUp := call.Rule == policy.RuleUsedUp
	for _, e := range made {
		if covered(tx, call) || slices.Contains(call.Allowed, e.ID) {
			for usedUp && e.UsedOn(tx.Now) < policy.UsedPerDay {
				e.Use(tx.Now)
			}
			then = append(then, e)
		}
	}
	for _, e := range now {
		known := slices.ContainsFunc(then, func(m policy.Entry) bool { return m.ID == e.ID })
		if !known && !e.CreatedAt.After(tx.Now) {
			e.Day, e.Used = "", 0
			then = append(then, e)
		}
	}
	return then, nil
}
