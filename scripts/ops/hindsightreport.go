package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/engine/approval"
)

// Hindsight compares the recorded decisions with those of a policy. It has no content and no address.
type Hindsight struct {
	Settings  []string       `json:"settings"` // the settings of the policy file, without their values
	Since     time.Time      `json:"since,omitzero"`
	Until     time.Time      `json:"until,omitzero"`
	Calls     int            `json:"calls"`
	Judged    int            `json:"judged"`
	Recorded  map[string]int `json:"recorded"` // judged calls by the recorded outcome: runs, asks or refused
	Policy    map[string]int `json:"policy"`   // judged calls by the policy's outcome
	Changed   []Change       `json:"changed"`  // the outcome or the rule differs; the most calls first
	NotJudged map[string]int `json:"notJudged"`
	Listed    []ListedCall   `json:"listed,omitempty"` // with -v: calls whose outcome differs
	Left      int            `json:"left,omitempty"`   // number of such calls that are not listed

	list    bool
	changed map[Change]int
}

// Change counts calls with the same recorded decision and the same new decision.
type Change struct {
	Tool     string  `json:"tool"`
	Agent    string  `json:"agent"`
	Recorded verdict `json:"recorded"`
	Policy   verdict `json:"policy"`
	Calls    int     `json:"calls"`
}

// outcome reports whether the outcome differs, and not only the rule.
func (c Change) outcome() bool { return c.Recorded.Outcome != c.Policy.Outcome }

// ListedCall names a call whose outcome differs.
type ListedCall struct {
	RunID    string  `json:"runId"`
	ActionID string  `json:"actionId"`
	Tool     string  `json:"tool"`
	Recorded verdict `json:"recorded"`
	Policy   verdict `json:"policy"`
}

func newHindsight(sel selection, list bool) *Hindsight {
	return &Hindsight{Settings: []string{}, Since: sel.since, Until: sel.until, Recorded: map[string]int{},
		Policy: map[string]int{}, Changed: []Change{}, NotJudged: map[string]int{}, list: list,
		changed: map[Change]int{}}
}

// skip counts a call that cannot be judged.
func (r *Hindsight) skip(reason string) {
	r.Calls++
	r.NotJudged[reason]++
}

func (r *Hindsight) add(c pastCall) error {
	var why approval.NotJudged
	switch {
	case errors.As(c.why, &why):
		r.skip(string(why))
		return nil
	case c.why != nil && c.event.Proposed == nil:
		r.NotJudged[reasonUnreadable]++ // the number of its calls is not known
		return nil
	case c.why != nil:
		r.skip(reasonText)
		return nil
	}
	call := *c.event.Proposed
	n := Change{Tool: call.Tool, Agent: c.ex.Run.AgentName(), Recorded: recorded(call), Policy: again(c.by, call)}
	r.Calls++
	r.Judged++
	r.Recorded[n.Recorded.Outcome]++
	r.Policy[n.Policy.Outcome]++
	if n.Recorded == n.Policy {
		return nil
	}
	if n.outcome() && r.list {
		if len(r.Listed) < maxListed {
			r.Listed = append(r.Listed, ListedCall{c.ex.ID, c.event.ActionID, n.Tool, n.Recorded, n.Policy})
		} else {
			r.Left++
		}
	}
	if _, known := r.changed[n]; !known && len(r.changed) >= maxGroups {
		n.Tool, n.Agent, n.Recorded.Rule, n.Policy.Rule = otherCalls, otherCalls, otherCalls, otherCalls
	}
	r.changed[n]++
	return nil
}

// done fills the fields that need all calls.
func (r *Hindsight) done() *Hindsight {
	for c, n := range r.changed {
		c.Calls = n
		r.Changed = append(r.Changed, c)
	}
	slices.SortFunc(r.Changed, func(a, b Change) int {
		return cmp.Or(b.Calls-a.Calls, strings.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})
	return r
}

// lines returns the report as text.
func (r *Hindsight) lines() []string {
	with := "the policy of the environment"
	if len(r.Settings) > 0 {
		with = strings.Join(r.Settings, ", ") + " of the file, and the environment"
	}
	out := []string{"policy: " + with, fmt.Sprintf("calls: %d, judged: %d", r.Calls, r.Judged), "",
		fmt.Sprintf("%-10s %9s %9s", "outcome", "recorded", "policy")}
	for _, o := range []string{runs, asks, refused} {
		out = append(out, fmt.Sprintf("%-10s %9d %9d", o, r.Recorded[o], r.Policy[o]))
	}
	out = append(out, "", "changed outcomes:")
	changed := changesIn(r.Changed, Change.outcome)
	if len(changed) == 0 {
		changed = []string{"     none"}
	}
	out = append(out, changed...)
	other := changesIn(r.Changed, func(c Change) bool { return !c.outcome() })
	if len(other) > 0 {
		out = append(out, "", "same outcome by another rule:")
		out = append(out, other...)
	}
	return slices.Concat(out, notJudged(r.NotJudged), r.listed())
}

func changesIn(all []Change, which func(Change) bool) (out []string) {
	for _, c := range all {
		if which(c) {
			out = append(out, fmt.Sprintf("%9d  %s of %s: %s (%s) -> %s (%s)", c.Calls, c.Tool, c.Agent,
				c.Recorded.Outcome, c.Recorded.Rule, c.Policy.Outcome, c.Policy.Rule))
		}
	}
	return out
}

func notJudged(by map[string]int) []string {
	if len(by) == 0 {
		return nil
	}
	out := []string{"", "not judged:"}
	for _, reason := range slices.Sorted(maps.Keys(by)) {
		out = append(out, fmt.Sprintf("%9d  %s", by[reason], reason))
	}
	return out
}

func (r *Hindsight) listed() (out []string) {
	if len(r.Listed) > 0 {
		out = []string{"", "calls with another outcome (story RUN shows a run):"}
	}
	for _, c := range r.Listed {
		out = append(out, fmt.Sprintf("  %s  %s  %s: %s (%s) -> %s (%s)", c.RunID, c.ActionID, c.Tool,
			c.Recorded.Outcome, c.Recorded.Rule, c.Policy.Outcome, c.Policy.Rule))
	}
	if r.Left > 0 {
		out = append(out, fmt.Sprintf("  and %d more", r.Left))
	}
	return out
}
