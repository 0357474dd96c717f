package tool_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
)

type letter struct {
	To      []string `json:"to"`
	Subject string   `json:"subject"`
	Zone    string   `json:"zone,omitempty"`
	Body    string   `json:"body"`
	Parts   []part   `json:"parts,omitempty"`
}

type part struct {
	Path string `json:"path"`
	Text string `json:"text"`
}

// TestFreeText checks that the strings that a tool does not pin are free text, in the schema's order. If the tool has
// no Bound, all strings except the targets are.
func TestFreeText(t *testing.T) {
	args := json.RawMessage(`{"body":"b","parts":[{"path":"a.go","text":"p"}],"subject":"s","to":["x@X.org"],"zone":"z"}`)
	d := tool.Def[letter, struct{}]{Name: "letter", Description: "Writes."}
	d.Targets = func(in letter) []tool.Target { return tool.Addresses([]string{strings.ToLower(in.To[0])}) }
	unbound := tool.Define(d)
	d.Pinned = func(in letter) any {
		in.Subject, in.Body, in.Parts = "", "", []part{{Path: in.Parts[0].Path}}
		return in
	}
	for _, c := range []struct {
		name string
		tool *tool.Tool
		want []string
	}{{"unbound", unbound, []string{"s", "z", "b", "a.go", "p"}}, {"bound", tool.Define(d), []string{"s", "b", "p"}}} {
		if got, err := c.tool.FreeText(args); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v, want %q", c.name, got, err, c.want)
		}
	}
}

// TestReading checks that a result has an origin even if it is unreadable, or if the tool does not describe it.
func TestReading(t *testing.T) {
	d := tool.Def[part, part]{Name: "read", Description: "Reads."}
	if got := tool.Define(d).Reading(json.RawMessage(`{"path":"a"}`), nil); got.Origin != "a result of read" {
		t.Errorf("%+v; want got.Origin “a result of read”", got)
	}
	d.Reading = func(in, out part) tool.Reading { return tool.Reading{Origin: in.Path + out.Text, Public: true} }
	for result, want := range map[string]string{`{"path":"a","text":"b"}`: "ab", `"cut`: "a"} {
		if got := tool.Define(d).Reading(json.RawMessage(`{"path":"a"}`), json.RawMessage(result)); got.Origin != want {
			t.Errorf("%s: %+v, want %s", result, got, want)
		}
	}
	d.Reading = func(part, part) tool.Reading { panic("the tool's own") }
	if got := tool.Define(d).Reading(json.RawMessage(`{}`), nil); got.Origin == "" {
		t.Errorf("%+v", got)
	}
}
