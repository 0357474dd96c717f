package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

type stepArgs struct {
	Command   string `json:"command"`
	Reasoning string `json:"reasoning,omitempty"`
}

type stepResult struct {
	Output string `json:"output"`
	Exit   int    `json:"exit"`
}

// steps gives the assistant a tool whose calls are shown as steps.
func (w *env) steps() {
	w.loop.Tools["step"] = tool.Define(tool.Def[stepArgs, stepResult]{Name: "step", Description: "Takes a step.",
		SideEffect: true, Preview: func(in stepArgs) tool.Preview { return tool.Preview{Title: in.Command} },
		Normalize: func(in stepArgs) (stepArgs, error) {
			if in.Command == "" {
				return in, fault.Invalid("command", "it is empty")
			}
			return in, nil
		},
		Step: func(in stepArgs, out *stepResult) tool.Step {
			s := tool.Step{Kind: tool.StepCommand, Command: in.Command, Reasoning: in.Reasoning}
			if out != nil {
				s.Output, s.ExitCode = out.Output, &out.Exit
			}
			return s
		},
		Execute: func(_ context.Context, _ tool.Call, in stepArgs) (stepResult, error) {
			out := stepResult{strings.Repeat("é", 1999) + "xyz", 1}
			if in.Command == "fails" {
				out.Output = "half"
				return out, tool.Partial(out, fault.New(fault.Tool, "timeout", "It took too long.").Because(
					errors.New("late")))
			}
			return out, nil
		}})
}

// TestStepsOfEachOutcome checks steps with each outcome: the run, its events and a stream show the same step.
func TestStepsOfEachOutcome(t *testing.T) {
	for name, c := range map[string]struct {
		args     stepArgs
		decision string
		want     string
	}{
		"done": {stepArgs{"ls", "To look."}, "approve_once", fmt.Sprintf(
			`{"kind":"command","reasoning":"To look.","command":"ls","output":"%sx","exitCode":1,"truncated":true}`,
			strings.Repeat("é", 1999))},
		"fails": {stepArgs{"fails", ""}, "approve_once",
			`{"kind":"error","command":"fails","output":"half","exitCode":1}`},
		"rejected": {stepArgs{"ls", ""}, "reject", `{"kind":"aborted","command":"ls"}`},
		"waits":    {stepArgs{"ls", ""}, "", `{"kind":"command","command":"ls"}`},
		"refused":  {stepArgs{"", ""}, "", `{"kind":"error"}`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			w.steps()
			w.model.Then(script.Turn{Calls: []script.Call{{Name: "step", Args: c.args}}}, script.Turn{Text: "Done."})
			a := w.send("POST", "/api/agent/run", "ana", `{"prompt":"x"}`)
			if c.decision != "" {
				w.send("POST", "/api/agent/approvals/resolve", "ana", fmt.Sprintf(`{"approvalId":%q,"decision":%q}`,
					a.at("actions", "0", "approvalId"), c.decision))
				for _, m := range w.queued {
					if _, err := w.loop.Resume(context.Background(), m, nil); err != nil {
						t.Fatal(err)
					}
				}
			}
			var want map[string]any
			if err := json.Unmarshal([]byte(c.want), &want); err != nil {
				t.Fatal(err)
			}
			got := w.send("GET", "/api/agent/runs/"+a.at("runId"), "ana", "").json["actions"].([]any)[0]
			if step := got.(map[string]any)["step"]; !reflect.DeepEqual(step, any(want)) {
				t.Errorf("%v", step)
			}
			if name == "waits" {
				return // its events have no end
			}
			var last any
			events := w.send("GET", "/api/agent/runs/"+a.at("runId")+"/events", "ana", "")
			for line := range strings.Lines(string(events.body)) {
				var l struct{ Action struct{ Step any } }
				if err := json.Unmarshal([]byte(line), &l); err != nil {
					t.Fatal(err)
				}
				if l.Action.Step != nil {
					last = l.Action.Step
				}
			}
			if !reflect.DeepEqual(last, any(want)) {
				t.Errorf("the events have %v", last)
			}
		})
	}
}
