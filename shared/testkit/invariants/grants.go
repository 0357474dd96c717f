package invariants

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/run"
)

// grants checks actions that used a plan's grant against the plan that was confirmed when they began: tool, pinned
// arguments, time and number of uses.
func (c *checked) grants() {
	var proposed, confirmed plan.Plan
	used := map[string]int{} // number of effects, by grant
	for _, e := range c.events {
		switch p := e.Planned; {
		case p != nil && p.Proposed != nil:
			c.decode(p.Proposed.Plan, &proposed)
		case p != nil && p.Confirmed != nil:
			if confirmed = proposed; p.Confirmed.Plan != nil {
				c.decode(p.Confirmed.Plan, &confirmed)
			}
		}
		if e.Started == nil || e.Started.Grant == "" {
			continue
		}
		a := c.state.Action(e.ActionID)
		i := slices.IndexFunc(confirmed.Grants, func(g plan.Grant) bool { return g.ID == e.Started.Grant })
		if a == nil || i < 0 {
			c.violates(Grants, "action %s uses grant %s, which no user gave", e.ActionID, e.Started.Grant)
			continue
		}
		g := confirmed.Grants[i]
		if g.Tool != a.Tool || !within(a.Args, g.Target) || !e.At.Before(g.Until) {
			c.violates(Grants, "action %s is outside grant %s", a.ID, g.ID)
		}
		if e.Started.Attempt > 1 {
			continue // the same call once more
		}
		key := fmt.Sprintf("%s %s", g.Tool, g.Target)
		if used[key] += len(c.ledger.effects[a.ID]); used[key] > g.MaxCalls {
			c.violates(Grants, "grant %s is for %d calls, and %d took place", g.ID, g.MaxCalls, used[key])
		}
	}
}

func (c *checked) decode(canonical json.RawMessage, into *plan.Plan) {
	p, err := plan.Decode(canonical)
	if err != nil {
		c.violates(Grants, "a plan cannot be read: %v", err)
	}
	*into = p
}

// within reports whether the arguments match everything in the target.
func within(args, target json.RawMessage) bool {
	var has, wants any
	return json.Unmarshal(args, &has) == nil && json.Unmarshal(target, &wants) == nil && covers(wants, has)
}

// covers reports whether a value has everything wanted: each field of an object, and each element of a list.
func covers(want, has any) bool {
	switch want := want.(type) {
	case nil:
		return true
	case map[string]any:
		in, ok := has.(map[string]any)
		for name := range want {
			ok = ok && covers(want[name], in[name])
		}
		return ok
	case []any:
		in, ok := has.([]any)
		ok = ok && len(in) == len(want)
		for i := range want {
			ok = ok && covers(want[i], in[i])
		}
		return ok
	}
	return want == has
}

// granted reports whether a grant of the plan permitted the action. grants checks such actions.
func granted(a *run.Action) bool { return a.Started.Grant != "" }
