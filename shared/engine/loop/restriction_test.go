package loop_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

type focus struct {
	On string `json:"on"`
}

// focusing returns a tool without an effect that narrows a run to these tools.
func focusing(name string, tools ...string) *tool.Tool {
	return tool.Define(tool.Def[focus, string]{Name: name, Description: "It narrows.",
		Restrict: func(in focus) *tool.Restriction {
			if in.On == "nothing" {
				return nil
			}
			return &tool.Restriction{By: "the skill " + in.On, Tools: tools}
		},
		Execute: func(context.Context, tool.Call, focus) (string, error) { return "Focus.", nil }})
}

// TestNarrowing checks a call of the model that narrows the set of tools for the calls after it, also in the same turn
// and until the end of the run. A second narrowing restores no tool, the remaining tools need their approvals as
// before, and the next run begins with all tools.
func TestNarrowing(t *testing.T) {
	ctx, w := context.Background(), newEnv(t)
	w.loop.Tools = tool.NewSet(w.send("send"), w.lookup(), focusing("narrow", "lookup", "widen"),
		focusing("widen", "lookup", "send"), focusing("none", "send"))
	w.assistant().Limits.ModelCalls = 9
	look := script.Call{Name: "lookup", Args: map[string]any{"word": "x"}}
	send := func(text string) script.Call {
		return script.Call{Name: "send", Args: map[string]any{"to": []string{"bob@x.org"}, "text": text}}
	}
	on := func(name, what string) script.Call { return script.Call{Name: name, Args: focus{what}} }
	w.model.Then(
		script.Turn{Calls: []script.Call{on("none", "nothing"), look}}, // a tool that can narrow the set, and does not
		script.Turn{Calls: []script.Call{on("narrow", "a"), send("one"), look}},
		script.Turn{Calls: []script.Call{on("widen", "b"), send("two")}},
		script.Turn{Text: "So I cannot."},
	)
	v, err := w.loop.Start(ctx, loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "write"})
	if err != nil || v.Status != run.Completed || len(w.open("ana")) != 0 || len(w.effects) != 0 {
		t.Fatalf("%v %+v %v; want v.Status %v, len(w.open(\"ana\")) 0, len(w.effects) 0",
			err, v, w.effects, run.Completed)
	}
	var said []string
	for _, a := range v.Actions {
		line := a.Tool + " " + string(a.Status)
		if a.Message != "" {
			line += " " + a.PolicyDecision + " " + a.Message
		}
		said = append(said, line)
	}
	const denied = "send failed deny " +
		"This tool may not be called now: the skill a lets only these be called: lookup, widen."
	want := []string{"none completed", "lookup completed", "narrow completed", denied, "lookup completed",
		"widen completed",
		denied}
	if !slices.Equal(said, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(said, "\n"), strings.Join(want, "\n"))
	}
	w.model.Then(script.Turn{Calls: []script.Call{send("three"), on("narrow", "a")}})
	v, err = w.loop.Start(ctx, loop.StartRequest{UID: "ana", ThreadID: v.ThreadID}, loop.Prompt{Text: "again"})
	if err != nil || v.Status != run.Awaiting || len(w.open("ana")) != 1 {
		t.Errorf("%v %+v: a call before the narrowing, in another run", err, v)
	}
}

// TestNarrowingWithoutPlan checks that a session can propose its plan after it has read something that leaves few
// tools.
func TestNarrowingWithoutPlan(t *testing.T) {
	w := newEnv(t)
	addArchitect(w)
	w.loop.Tools["narrow"] = focusing("narrow", "lookup")
	agent := w.loop.Agents.Get(architect)
	agent.Tools = append(agent.Tools, "narrow")
	w.model.Then(turn(t, `call narrow {"on":"a","reasoning":"It says how."}`), turn(t, granted))
	req, in := w.session("open issues", 48*time.Hour)
	v, err := w.loop.Start(context.Background(), req, in)
	if err != nil || v.PlanState().Plan.Status() != plan.StatusAwaiting {
		t.Fatalf("%v %+v; want v.PlanState().Plan.Status() %v", err, v, plan.StatusAwaiting)
	}
}
