package run_test

import (
	"encoding/json"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
)

// TestHeading checks that a conversation is named after its effect if it had exactly one.
func TestHeading(t *testing.T) {
	type letter struct {
		To string `json:"to"`
	}
	define := func(name string, heading func(letter) string) *tool.Tool {
		return tool.Define(tool.Def[letter, struct{}]{Name: name, Description: "Sends.", SideEffect: true,
			Preview: func(letter) tool.Preview { return tool.Preview{Title: "Send"} }, Heading: heading})
	}
	tools := tool.Set{}
	for _, one := range []*tool.Tool{define("send", func(l letter) string { return "Letter to " + l.To }),
		define("plain", nil), define("broken", func(letter) string { panic("no") })} {
		tools[one.Name] = one
	}
	tools["told"] = tool.Define(tool.Def[letter, struct{}]{Name: "told", Description: "Sends.", SideEffect: true,
		Preview: func(letter) tool.Preview { return tool.Preview{Title: "Send"} },
		Summary: func(l letter) string { return "Sent a letter to " + l.To + "." }})
	did := func(name, to string) *run.Action {
		args, err := json.Marshal(letter{to})
		if err != nil {
			t.Fatal(err)
		}
		a := &run.Action{Status: run.ActionCompleted, Execution: run.Succeeded}
		a.Tool, a.Args, a.SideEffect = name, args, true
		return a
	}
	rejected := did("send", "bob")
	rejected.Status, rejected.Execution = run.ActionRejected, run.NotStarted
	unknown := did("send", "bob")
	unknown.Status, unknown.Execution = run.ActionFailed, run.UnknownState
	read := did("send", "bob")
	read.SideEffect = false
	for name, c := range map[string]struct {
		actions []*run.Action
		want    string
	}{
		"nothing":             {nil, ""},
		"one thing":           {[]*run.Action{read, did("send", "ana"), rejected}, "Letter to ana"},
		"two things":          {[]*run.Action{did("send", "ana"), did("send", "bob")}, ""},
		"one, and perhaps":    {[]*run.Action{did("send", "ana"), unknown}, ""},
		"its summary":         {[]*run.Action{did("told", "ana")}, "Sent a letter to ana"},
		"no words for it":     {[]*run.Action{did("plain", "ana")}, ""},
		"its words fail":      {[]*run.Action{did("broken", "ana")}, ""},
		"the tool is gone":    {[]*run.Action{did("gone", "ana")}, ""},
		"what cannot be seen": {[]*run.Action{did("send", "a\u202eb\nc")}, "Letter to a⟨U+202E⟩b⟨U+000A⟩c"},
	} {
		if got := run.Heading(tools, &run.State{Actions: c.actions}); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
