package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
)

type args struct {
	To    []string `json:"to" jsonschema:"whom to tell"`
	Text  string   `json:"text"`
	Level string   `json:"level,omitempty"`
	Place place    `json:"place,omitzero"`
}

type place struct {
	City string `json:"city"`
}

type answer struct {
	ID string `json:"id"`
}

func define(change func(*tool.Def[args, answer])) *tool.Tool {
	d := tool.Def[args, answer]{
		Name: "tell", Description: "Tells a person something.", SideEffect: true,
		Refine: func(s *jsonschema.Schema) {
			s.Properties["level"].Enum = []any{"low", "high"}
			s.Properties["text"].MaxLength = jsonschema.Ptr(20)
			s.Properties["to"].MinItems = jsonschema.Ptr(1)
		},
		Preview: func(a args) tool.Preview { return tool.Preview{Title: "Tell " + a.Text} },
		Targets: func(a args) []tool.Target { return tool.Addresses(a.To) },
		Execute: func(context.Context, tool.Call, args) (answer, error) { return answer{ID: "1"}, nil },
	}
	if change != nil {
		change(&d)
	}
	return tool.Define(d)
}

func TestNormalizeCanonical(t *testing.T) {
	tl := define(nil)
	a, err := tl.Normalize(json.RawMessage(` { "text":"\u0061\/b", "to":[ "x" ] }`))
	if err != nil || string(a) != `{"text":"a/b","to":["x"]}` {
		t.Fatalf("Normalize = %s, %v", a, err)
	}
	if again, err := tl.Normalize(a); err != nil || string(again) != string(a) {
		t.Errorf("Normalize of the canonical form = %s, %v", again, err)
	}
}

// TestNormalizeWholeNumbers checks that 5.0 counts as 5, because some programs have no integers.
func TestNormalizeWholeNumbers(t *testing.T) {
	type counted struct {
		Times int `json:"times"`
	}
	tl := tool.Define(tool.Def[counted, answer]{Name: "count", Description: "Counts."})
	for in, want := range map[string]string{`2`: `{"times":2}`, `2.0`: `{"times":2}`, `0.2e1`: `{"times":2}`, `1.5`: ``} {
		a, err := tl.Normalize(json.RawMessage(`{"times":` + in + `}`))
		if string(a) != want || (err == nil) != (want != "") {
			t.Errorf("Normalize(%s) = %s, %v", in, a, err)
		}
	}
}

func TestNormalizeErrors(t *testing.T) {
	for name, c := range map[string]struct{ in, field, word string }{
		"string for a list": {`{"to":"SECRET","text":"x"}`, "to", "a list"},
		"number in a list":  {`{"to":[7],"text":"x"}`, "to/0", "a text"},
		"null list":         {`{"to":null,"text":"x"}`, "to", "a list"},
		"empty list":        {`{"to":[],"text":"x"}`, "to", "too few"},
		"missing":           {`{"to":["a"]}`, "text", "required"},
		"nothing":           {`{}`, "to", "required"},
		"missing within":    {`{"to":["a"],"text":"x","place":{}}`, "place/city", "required"},
		"not in the enum":   {`{"to":["a"],"text":"x","level":"SECRET"}`, "level", "not one of"},
		"too long":          {`{"to":["a"],"text":"` + strings.Repeat("SECRET ", 10) + `"}`, "text", "too long"},
		"forged rule": {`{"to":["a"],"text":"x","level":"validating /properties/to: SECRET"}`, "level",
			"not one of"},
		"unknown field":      {`{"to":["a"],"text":"x","SECRET":1}`, "SECRET", "unknown field"},
		"a name twice":       {`{"to":["a"],"to":["b"],"text":"x"}`, "to", "duplicate key"},
		"a name in capitals": {`{"To":["a"],"text":"x"}`, "To", "unknown field"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := define(nil).Normalize(json.RawMessage(c.in))
			var e *fault.Error
			if !errors.As(err, &e) || e.Class != fault.Validation {
				t.Fatalf("Normalize = %v; want a ValidationError", err)
			}
			if e.Field != c.field || !strings.Contains(e.Message, c.word) {
				t.Errorf("error at %q: %q; want %q at %q", e.Field, e.Message, c.word, c.field)
			}
			if strings.Contains(e.Message, "SECRET") || e.Err != nil && strings.Contains(e.Err.Error(), "SECRET") {
				t.Errorf("the error repeats the value: %v, %v", e, e.Err)
			}
		})
	}
}

func TestSchemaPlainAndVersioned(t *testing.T) {
	tl := define(nil)
	if s := string(tl.Schema); strings.Contains(s, "null") || !strings.Contains(s, `"whom to tell"`) {
		t.Errorf("schema %s", s)
	}
	other := define(func(d *tool.Def[args, answer]) { d.Refine = nil })
	if tl.Version() == other.Version() || tl.Version() != define(nil).Version() {
		t.Error("the version does not depend on the schema only")
	}
}

func TestDefineApprovalDefault(t *testing.T) {
	if a := define(nil).Approval; a != tool.Required {
		t.Errorf("approval %q for a side effect", a)
	}
	if a := define(func(d *tool.Def[args, answer]) { d.SideEffect = false }).Approval; a != tool.NotRequired {
		t.Errorf("approval %q without a side effect", a)
	}
}

func TestDefineWithoutExecute(t *testing.T) {
	tl := define(func(d *tool.Def[args, answer]) { d.Execute = nil })
	if !tl.Waits() || tl.Prepares() {
		t.Error("a tool without Execute: Waits is false, or Prepares is true")
	}
}

func TestReconcileMissing(t *testing.T) {
	out, err := define(nil).Reconcile(t.Context(), tool.Call{Args: json.RawMessage(`{}`)})
	if err != nil || out.Verdict != tool.Unknown || out.Reason == "" {
		t.Errorf("Reconcile = %+v, %v", out, err)
	}
}

func TestExecuteInvalidResult(t *testing.T) {
	type odd struct {
		IDs []string `json:"ids"`
	}
	tl := tool.Define(tool.Def[args, odd]{
		Name: "odd", Description: "Answers without its list.", SideEffect: true,
		Preview: func(args) tool.Preview { return tool.Preview{} },
		Execute: func(context.Context, tool.Call, args) (odd, error) { return odd{}, nil },
	})
	got, err := tl.Execute(t.Context(), tool.Call{Args: json.RawMessage(`{"to":["a"],"text":"x"}`)})
	if err != nil || string(
		got) != `{"answer":"It was done. The answer could not be read: ids: must be a list.","done":true}` {
		t.Errorf("Execute = %s, %v", got, err)
	}
}

func TestDefinePanics(t *testing.T) {
	for name, change := range map[string]func(*tool.Def[args, answer]){
		"bad name":                       func(d *tool.Def[args, answer]) { d.Name = "Tell me" },
		"no description":                 func(d *tool.Def[args, answer]) { d.Description = "" },
		"no preview":                     func(d *tool.Def[args, answer]) { d.Preview = nil },
		"a wait of a tool that executes": func(d *tool.Def[args, answer]) { d.Wait = time.Minute },
		"a wait of less than nothing":    func(d *tool.Def[args, answer]) { d.Execute, d.Wait = nil, -time.Minute },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			define(change)
		})
	}
	defer func() {
		if recover() == nil {
			t.Error("no panic for two tools with one name")
		}
	}()
	tool.NewSet(define(nil), define(nil))
}

func TestMarks(t *testing.T) {
	cause := errors.New("cause")
	amb, tra := fmt.Errorf("x: %w", tool.Ambiguous(cause)), fmt.Errorf("x: %w", tool.Transient(cause))
	if !tool.IsAmbiguous(amb) || tool.IsAmbiguous(tra) || !tool.IsTransient(tra) || tool.IsTransient(amb) ||
		!errors.Is(amb, cause) {
		t.Error("a mark is lost, or confused with another, by wrapping")
	}
	if !tool.IsAmbiguous(context.DeadlineExceeded) || tool.IsAmbiguous(cause) {
		t.Error("an ended context must be ambiguous, and a plain error must not")
	}
}

// TestCompleteFacts completes arguments with a fact that neither the model nor a user can set.
func TestCompleteFacts(t *testing.T) {
	type note struct {
		Text   string `json:"text"`
		Before string `json:"before,omitempty"`
	}
	d := tool.Def[note, answer]{Name: "note", Description: "Changes a note.", SideEffect: true,
		Preview: func(n note) tool.Preview { return tool.Preview{Title: n.Before + " becomes " + n.Text} },
		Refine:  func(s *jsonschema.Schema) { delete(s.Properties, "before") },
		Complete: func(_ context.Context, _ tool.Call, n note) (note, error) {
			n.Before = "old"
			return n, nil
		},
		Changes: func(n note) (note, []tool.Change) {
			return note{}, []tool.Change{{Stood: n.Before, Added: n.Text}}
		},
		Execute: func(context.Context, tool.Call, note) (answer, error) { return answer{}, nil }}
	d.Bare = func(n note) note {
		n.Before = ""
		return n
	}
	tl := tool.Define(d)
	args, err := tl.Normalize(json.RawMessage(`{"text":"new","before":"the model's"}`))
	if err != nil || string(args) != `{"text":"new"}` {
		t.Fatalf("normalised to %s, %v", args, err)
	}
	args, err = tl.Complete(t.Context(), tool.Call{Args: args})
	if p, _ := tl.Preview(args); err != nil || p.Title != "old becomes new" {
		t.Errorf("completed to %s, %v", args, err)
	}
	free, err := tl.FreeText(args)
	_, changes, _ := tl.Changes(args)
	if err != nil || len(free) != 0 || len(changes) != 1 || changes[0].Added != "new" {
		t.Errorf("free text %q, changes %+v, %v", free, changes, err)
	}
}
