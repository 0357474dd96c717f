package run_test

import (
	"encoding/json"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
)

// TestRecordWithoutTool checks that a process that reads a run without having its tools still shows the arguments.
func TestRecordWithoutTool(t *testing.T) {
	a := &run.Action{ID: "a", Status: run.ActionCompleted, Execution: run.Succeeded}
	a.Tool, a.SideEffect = "github.createIssue", true
	a.Args = json.RawMessage(`{"body":"one\ntwo","title":"Broken\u202e"}`)
	v := run.NewView(run.Run{}, &run.State{Actions: []*run.Action{a}}, "")
	v.AddRecords(tool.Set{}, nil)
	p := v.Actions[0].Record.Preview
	if p.Title != "github.createIssue" || len(p.Fields) != 2 || p.Fields[0].Label != "body" || !p.Fields[0].Long ||
		p.Fields[1].Value != "Broken⟨U+202E⟩" {
		t.Errorf("%+v", p)
	}
}
