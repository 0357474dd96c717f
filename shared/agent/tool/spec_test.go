package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
)

func TestClassDefault(t *testing.T) {
	if c := define(nil).Class; c != tool.ClassChange {
		t.Errorf("class %q for a tool with a side effect", c)
	}
	if c := define(func(d *tool.Def[args, answer]) { d.SideEffect = false }).Class; c != tool.ClassRead {
		t.Errorf("class %q for a tool without a side effect", c)
	}
	for what, change := range map[string]func(*tool.Declaration){
		"needs a tool without": func(d *tool.Declaration) { d.SideEffect, d.Class = true, tool.ClassRead },
		"needs a side effect":  func(d *tool.Declaration) { d.Class = tool.ClassDestructive },
		"is not one of":        func(d *tool.Declaration) { d.Class = "careful" },
		"is negative":          func(d *tool.Declaration) { d.Timeout = -time.Second },
	} {
		d := tool.Declaration{Name: "x", Description: "Does x.", Input: schemaOf(t, searchInput),
			Preview: func(json.RawMessage) (tool.Preview, error) { return tool.Preview{}, nil }}
		change(&d)
		if _, err := tool.Declare(d); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("error %v; want one that contains %q", err, what)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("a tool of the class read with a side effect was defined")
		}
	}()
	define(func(d *tool.Def[args, answer]) { d.Class = tool.ClassRead })
}

func TestCardClassWarning(t *testing.T) {
	warnings := func(c tool.Class) []string {
		tl := define(func(d *tool.Def[args, answer]) {
			d.Class = c
			d.Preview = func(args) tool.Preview { return tool.Preview{Warnings: []string{"The tool's own."}} }
		})
		p, err := tl.Preview(json.RawMessage(`{"to":["a@example.com"],"text":"x"}`))
		if err != nil {
			t.Fatal(err)
		}
		return p.Warnings
	}
	if w := warnings(tool.ClassChange); len(w) != 1 {
		t.Errorf("warnings of a change: %q", w)
	}
	for class, word := range map[tool.Class]string{tool.ClassDestructive: "deletes", tool.ClassOpaque: "in advance"} {
		if w := warnings(class); len(w) != 2 || !strings.Contains(w[0], word) || w[1] != "The tool's own." {
			t.Errorf("warnings of class %s: %q", class, w)
		}
	}
}

// TestVersionOfSchema checks that waiting approvals keep their hash when a release adds other properties to a tool.
func TestVersionOfSchema(t *testing.T) {
	before, after := define(nil), define(func(d *tool.Def[args, answer]) {
		d.Class, d.Timeout, d.Final, d.Untrusted = tool.ClassOpaque, time.Minute, true, true
	})
	if before.Version() != after.Version() || before.Version() != "f746263c" {
		t.Errorf("versions %s and %s differ", before.Version(), after.Version())
	}
}

// TestVersionOfForeignTool checks that an approval is bound to a stranger's description of a tool: name, description
// and schema. The name is hashed beside the version (run.ArgsHash).
func TestVersionOfForeignTool(t *testing.T) {
	base := tool.Spec{Name: "a", Source: "server", Description: "Reads.", Schema: json.RawMessage(`{"type":"object"}`)}
	seen := map[string]bool{base.Version(): true}
	for _, change := range []func(*tool.Spec){
		func(s *tool.Spec) { s.Description = "Reads, and sends it on." },
		func(s *tool.Spec) { s.Source = "another server" },
		func(s *tool.Spec) { s.Schema = json.RawMessage(`{"type":"object","properties":{}}`) },
		func(s *tool.Spec) { s.Source, s.Description = "serverR", "eads." },
	} {
		s := base
		change(&s)
		if v := s.Version(); seen[v] || len(v) != 32 {
			t.Errorf("version of %+v: %s", s, v)
		} else {
			seen[v] = true
		}
	}
	own, other := base, base
	own.Source, other.Source, other.Description = "", "", "Writes."
	if other.Version() != own.Version() {
		t.Error("the version of a built-in tool depends on the description")
	}
}

func TestPinnedWithoutFreeText(t *testing.T) {
	in := json.RawMessage(`{"text":"x","to":["a@example.com"]}`)
	if b, err := define(nil).Pinned(in); err != nil || string(b) != string(in) {
		t.Errorf("without Bound: %s, %v", b, err)
	}
	if b, err := declare(t, nil).Pinned(in); err != nil || string(b) != string(in) {
		t.Errorf("declared tool: %s, %v", b, err)
	}
	tl := define(func(d *tool.Def[args, answer]) {
		d.Pinned = func(a args) any {
			return struct {
				To    []string `json:"to"`
				Level string   `json:"level"`
			}{a.To, a.Level}
		}
	})
	if b, err := tl.Pinned(in); err != nil || string(b) != `{"level":"","to":["a@example.com"]}` {
		t.Errorf("with Bound: %s, %v", b, err)
	}
	panics := define(func(d *tool.Def[args, answer]) { d.Pinned = func(args) any { panic(1) } })
	if _, err := panics.Pinned(in); !tool.IsPanic(err) {
		t.Errorf("after a panic: %v", err)
	}
}

func TestPartialResult(t *testing.T) {
	refused := fault.New(fault.Tool, "refused", "No.")
	err := tool.Partial(answer{ID: "half"}, tool.Ambiguous(refused))
	if got := string(tool.PartialResult(err)); got != `{"id":"half"}` {
		t.Errorf("partial result %s", got)
	}
	if !tool.IsAmbiguous(err) || !errors.Is(err, refused) || tool.IsTransient(err) {
		t.Errorf("the marks of %v changed", err)
	}
	if got := tool.PartialResult(refused); got != nil {
		t.Errorf("an error without a partial result returns %s", got)
	}
	if err := tool.Partial(func() {}, refused); !errors.Is(err, refused) || tool.PartialResult(err) != nil ||
		!strings.Contains(err.Error(), "JSON") {
		t.Errorf("a result that cannot be encoded as JSON: %v", err)
	}
	tl := define(func(d *tool.Def[args, answer]) {
		d.Execute = func(context.Context, tool.Call, args) (answer, error) { return answer{}, err }
	})
	_, got := tl.Execute(t.Context(), tool.Call{Args: json.RawMessage(`{"text":"x","to":["a"]}`)})
	if tool.PartialResult(got) == nil {
		t.Errorf("Execute returned %v without the partial result", got)
	}
}
