package plan_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/plan"
)

// awaits makes a task end with green checks, after at most two tries.
func awaits(t *plan.Task) { t.GreenWithin = 2 }

// look returns a wait for the checks of the branch fix that ended in the state.
func look(n int, state string) plan.Act {
	return plan.Act{ID: fmt.Sprintf("look %d", n), Tool: "github.waitForChecks", Over: true, Execution: plan.Succeeded,
		Args:        json.RawMessage(`{"owner":"acme","repo":"web","ref":"fix"}`),
		Observation: json.RawMessage(`{"checks":[{"name":"\"state\":\"success\"","state":"success"}],"state":"` + state + `"}`)}
}

// TestGreenChecks has a task that ends with green checks. The record decides, not the model.
func TestGreenChecks(t *testing.T) {
	commit := plan.Act{ID: "commit", Tool: "github.commitFiles", Effect: true, Over: true, Execution: plan.Succeeded,
		Args: json.RawMessage(`{"owner":"acme","repo":"web","branch":"fix"}`)}
	refused := commit
	refused.Execution, refused.Error = plan.NotStarted, &plan.Trouble{Code: "rejected"}
	lost := look(9, "success")
	lost.Error = &plan.Trouble{Code: "not_found"}
	for name, c := range map[string]struct {
		acts []plan.Act
		done bool
	}{
		"no wait":               {nil, false},
		"red":                   {[]plan.Act{look(1, "failure")}, false},
		"no checks":             {[]plan.Act{look(1, "none")}, false},
		"not in time":           {[]plan.Act{look(1, "pending")}, false},
		"a wait that failed":    {[]plan.Act{lost}, false},
		"green":                 {[]plan.Act{commit, look(1, "success")}, true},
		"green at last":         {[]plan.Act{look(1, "failure"), commit, look(2, "success")}, true},
		"red at last":           {[]plan.Act{look(1, "success"), look(2, "failure")}, false},
		"a commit afterwards":   {[]plan.Act{look(1, "success"), commit}, false},
		"a commit that was not": {[]plan.Act{look(1, "success"), refused}, true},
	} {
		s := executing(t, plan.Plan{Tasks: []plan.Task{task("One", awaits)}})
		for _, a := range c.acts {
			s.Record(a)
		}
		v := judge(t, s, complete())
		if why := "github.waitForChecks with green checks"; (v.Refused == "") != c.done || !c.done &&
			!strings.Contains(v.Refused, why) {
			t.Errorf("%s: %+v; want done %v, or refused because of %s", name, v, c.done, why)
		}
	}
}

// TestGreenDelivery has a session that delivers a commit or a pull request: only checks of its branch or commit count.
func TestGreenDelivery(t *testing.T) {
	did := func(tool, args, result string) plan.Act {
		return plan.Act{ID: tool + args, Tool: tool, Effect: true, Over: true, Execution: plan.Succeeded,
			Args: json.RawMessage(args), Observation: json.RawMessage(result)}
	}
	waited := func(repo, ref, state string) plan.Act {
		a := look(1, state)
		a.ID, a.Args = repo+ref, json.RawMessage(fmt.Sprintf(`{"owner":"Acme","repo":%q,"ref":%q}`, repo, ref))
		return a
	}
	commit := did("github.commitFiles", `{"owner":"acme","repo":"web","branch":"fix"}`, `{"sha":"c0ffee1"}`)
	pull := did("github.createPullRequest", `{"owner":"acme","repo":"web","head":"fix","base":"main"}`, `{"number":4}`)
	ofFork := did("github.createPullRequest", `{"owner":"acme","repo":"web","head":"ana:fix","base":"main"}`, `{}`)
	for name, c := range map[string]struct {
		acts []plan.Act
		done bool
	}{
		"its branch":         {[]plan.Act{commit, waited("web", "fix", "success")}, true},
		"its branch in full": {[]plan.Act{commit, waited("web", "refs/heads/fix", "success")}, true},
		"its commit":         {[]plan.Act{commit, waited("web", "c0ffee1", "success")}, true},
		"the base":           {[]plan.Act{commit, waited("web", "main", "success")}, false},
		"another repository": {[]plan.Act{commit, waited("api", "fix", "success")}, false},
		"the base at last": {[]plan.Act{commit, waited("web", "fix", "success"),
			waited("web", "main", "success")}, false},
		"a pull request":    {[]plan.Act{commit, pull, waited("web", "fix", "success")}, true},
		"its base":          {[]plan.Act{pull, waited("web", "main", "success")}, false},
		"its head's commit": {[]plan.Act{commit, pull, waited("web", "c0ffee1", "success")}, true},
		"a fork's commit":   {[]plan.Act{commit, ofFork, waited("web", "c0ffee1", "success")}, true},
	} {
		s := executing(t, plan.Plan{Tasks: []plan.Task{task("One", awaits)}})
		for _, a := range c.acts {
			s.Record(a)
		}
		v := judge(t, s, complete())
		if (v.Refused == "") != c.done || !c.done && !strings.Contains(v.Refused, `green checks of the branch "fix"`) {
			t.Errorf("%s: %+v; want done %v, or refused because of the branch fix", name, v, c.done)
		}
	}
}

// TestGreenTries has a task whose waits find no green checks. It is given up after as many as its plan allows.
func TestGreenTries(t *testing.T) {
	s := executing(t, plan.Plan{Tasks: []plan.Task{task("One", awaits)}})
	if s.Record(look(1, "failure")); s.Stuck() != "" {
		t.Errorf("after one of two tries: %q", s.Stuck())
	}
	under := look(2, "failure")
	under.Over = false
	if s.Record(under); s.Stuck() != "" {
		t.Errorf("during the second try: %q", s.Stuck())
	}
	s.Record(look(2, "failure"))
	if want := "The checks were not green after 2 tries."; s.Stuck() != want {
		t.Errorf("after two tries: %q, want %q", s.Stuck(), want)
	}
	s = executing(t, plan.Plan{Tasks: []plan.Task{task("One")}})
	s.Record(look(1, "failure"))
	if s.Record(look(2, "pending")); s.Stuck() != "" {
		t.Errorf("a task without the condition: %q", s.Stuck())
	}
}

// TestGreenPlan has the condition in a plan: the wait is among the task's tools, the card shows it, and the model
// cannot drop or change it without its user.
func TestGreenPlan(t *testing.T) {
	p := normal(t, bind(), plan.Plan{Tasks: []plan.Task{task("One"), task("Two", awaits)}})
	if tools := p.Tasks[1].Tools; len(tools) != 2 || tools[1] != "github.waitForChecks" {
		t.Errorf("its tools are %q", tools)
	}
	if card := fmt.Sprint(bind().Card(p)); !strings.Contains(card, "green checks, after at most 2 tries") {
		t.Errorf("the card is %s", card)
	}
	for _, tries := range []int{-1, 11} {
		p := plan.Plan{Tasks: []plan.Task{task("One", func(t *plan.Task) { t.GreenWithin = tries })}}
		if _, err := bind().Normalize(p); err == nil || !strings.Contains(err.Error(), "from 0 to 10") {
			t.Errorf("%d tries: %v", tries, err)
		}
	}
	for name, change := range map[string]plan.Change{"dropped": {Op: plan.Obsolete, TaskID: "t2"},
		"more tries": reworded("t2", "Two", func(t *plan.Task) { t.GreenWithin = 3 })} {
		s := executing(t, plan.Plan{Tasks: []plan.Task{task("One"), task("Two", awaits)}})
		if v := judge(t, s, complete(change)); v.Revision == nil {
			t.Errorf("%s: it applies at once: %+v", name, v)
		}
	}
}
