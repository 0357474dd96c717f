// Package toolstest is the conformance suite of tools. It checks everything that the policy, approvals and the loop
// require of every tool. A tool's test provides the tool and its data. [Suite] checks arguments, and [Settling] checks
// the outcomes of a provider's faults.
package toolstest

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// A Suite is a tool with arguments for its checks. Changes apply to Args: a nil value removes an argument.
type Suite struct {
	Tool *tool.Tool
	Args map[string]any // an ordinary call

	// Other has for each argument of the schema a change that makes the call a different one: its preview differs, and
	// so do its pinned arguments, unless the argument is free text.
	Other map[string]map[string]any
	Fixed map[string]any // the only value that an optional argument may have
	Free  []string       // the arguments that are free text

	Labels    []string          // of all fields that a preview can have
	Texts     map[string]string // the arguments that the preview shows whole, with their labels, or [Title]
	Addresses []Addresses       // the arguments that are addresses, in the order of the targets
	// Reached returns the targets of other kinds, which come before the addresses. Nil: none.
	Reached func(args map[string]any) []tool.Target

	Previews map[string]Shown   // what a preview contains, by name
	Refused  map[string]Refused // invalid arguments, by name
	Unsaid   []string           // parts of refused values that no error repeats
}

// Addresses is an argument whose addresses are the call's targets. The preview lists them under the label, one a line.
// Without a label, the suite only checks that they are targets.
type Addresses struct{ Argument, Label string }

// Title is the label for an argument that the preview shows in its title.
const Title = ""

// Shown is a change and the texts that the preview then contains. The preview has a line for the title, each field and
// each warning (after "! ").
type Shown struct {
	Change map[string]any
	Want   []string
}

// Refused is a change that makes the arguments invalid.
type Refused struct {
	Change map[string]any
	Field  string      // that the error names
	Class  fault.Class // empty: Validation
}

// With returns the arguments with a change.
func (s Suite) With(change map[string]any) json.RawMessage {
	args := maps.Clone(s.Args)
	for name, v := range change {
		if args[name] = v; v == nil {
			delete(args, name)
		}
	}
	b, err := json.Marshal(args)
	if err != nil {
		panic(err) // a value of the test that has no JSON form
	}
	return b
}

// Run runs the suite.
func (s Suite) Run(t *testing.T) {
	t.Run("invalid calls are refused and the field named", s.refuses)
	t.Run("no argument has the type of another", s.refusesTypes)
	t.Run("arguments have one form", s.oneForm)
	t.Run("every argument is shown, and bound unless it is free text", s.showsAll)
	t.Run("nothing is hidden", s.hidesNothing)
	t.Run("a preview says what is done", s.saysAll)
}

// Holds checks the rules that hold for any arguments, and returns their normal form, or false if they are refused. It
// is the body of a fuzz target.
func (s Suite) Holds(t *testing.T, raw json.RawMessage) (args json.RawMessage, ok bool) {
	t.Helper()
	args, err := s.Tool.Normalize(raw)
	if err != nil {
		if c := fault.As(err).Class; c != fault.Validation && c != fault.Policy {
			t.Fatalf("%s is refused with %v", raw, err)
		}
		return nil, false
	}
	if canonical, err := strictjson.Canonical(args); err != nil || !bytes.Equal(canonical, args) {
		t.Fatalf("%s becomes %s; its canonical form is %s, %v", raw, args, canonical, err)
	}
	if again, err := s.Tool.Normalize(args); err != nil || !bytes.Equal(again, args) {
		t.Fatalf("%s becomes %s, and that %s, %v", raw, args, again, err)
	}
	if revised, err := s.Tool.Revise(args, args); err != nil || !bytes.Equal(revised, args) {
		t.Fatalf("%s is revised to %s, %v, and nothing was edited", args, revised, err)
	}
	s.previews(t, args)
	s.reaches(t, args)
	s.binds(t, args)
	clean(t, "the summary", s.Tool.Summary(args), false)
	return args, true
}

// previews checks that the preview shows all texts and addresses, and hides nothing.
func (s Suite) previews(t *testing.T, args json.RawMessage) {
	t.Helper()
	p, values := s.preview(t, args), s.values(t, args)
	if again := s.preview(t, args); !equal(p, again) {
		t.Fatalf("%s has the preview %+v, and then %+v", args, p, again)
	}
	hidesNothing(t, p, s.Labels...)
	for argument, label := range s.Texts {
		if text, _ := values[argument].(string); text != "" {
			shows(t, p, label, text)
		}
	}
	for _, a := range s.Addresses {
		if a.Label != "" {
			lists(t, p, a.Label, texts(values[a.Argument]))
		}
	}
}

// reaches checks that the targets are the addresses: the same each time, without duplicates and in normal form.
func (s Suite) reaches(t *testing.T, args json.RawMessage) {
	t.Helper()
	var all []string
	for _, a := range s.Addresses {
		all = append(all, texts(s.values(t, args)[a.Argument])...)
	}
	want := tool.Addresses(all)
	if s.Reached != nil {
		want = append(s.Reached(s.values(t, args)), want...)
	}
	for range 2 {
		if got, err := s.Tool.Targets(args); err != nil || !slices.Equal(got, want) {
			t.Fatalf("%s reaches %v, %v; want %v", args, got, err, want)
		}
	}
	seen := map[string]bool{}
	for _, a := range tool.Addresses(all) {
		if a.Malformed() || seen[a.Value] {
			t.Fatalf("%s reaches %q, which is malformed or there twice", args, a.Value)
		}
		seen[a.Value] = true
	}
}

// binds checks that the pinned arguments are in canonical form, the same each time, and contain no free text.
func (s Suite) binds(t *testing.T, args json.RawMessage) {
	t.Helper()
	bound, again := s.bound(t, args), s.bound(t, args)
	canonical, err := strictjson.Canonical(bound)
	if err != nil || !bytes.Equal(bound, canonical) || !bytes.Equal(bound, again) {
		t.Fatalf("of %s is bound %s, then %s; the canonical form is %s, %v", args, bound, again, canonical, err)
	}
	values, kept := s.values(t, args), s.values(t, bound)
	for _, name := range s.Free {
		if kept[name] != nil && kept[name] != "" && kept[name] == values[name] {
			t.Fatalf("of %s is bound the free text %s", args, name)
		}
	}
}

// schema returns the type of each argument, and which are required.
func (s Suite) schema(t *testing.T) (properties map[string]string, required []string) {
	t.Helper()
	var schema struct {
		Properties map[string]struct{ Type string }
		Required   []string
	}
	if err := json.Unmarshal(s.Tool.Schema, &schema); err != nil {
		t.Fatal(err)
	}
	properties = map[string]string{}
	for name, p := range schema.Properties {
		properties[name] = p.Type
	}
	if len(properties) == 0 {
		t.Fatalf("the schema has no arguments: %s", s.Tool.Schema)
	}
	return properties, schema.Required
}

func (s Suite) values(t *testing.T, args json.RawMessage) (values map[string]any) {
	t.Helper()
	if err := json.Unmarshal(args, &values); err != nil {
		t.Fatal(err)
	}
	return values
}

func (s Suite) preview(t *testing.T, args json.RawMessage) tool.Preview {
	t.Helper()
	p, err := s.Tool.Preview(args)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (s Suite) bound(t *testing.T, args json.RawMessage) json.RawMessage {
	t.Helper()
	b, err := s.Tool.Pinned(args)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func texts(list any) (out []string) {
	all, _ := list.([]any)
	for _, v := range all {
		text, _ := v.(string)
		out = append(out, text)
	}
	return out
}

func equal(a, b tool.Preview) bool {
	same := func(a, b tool.Field) bool { return reflect.DeepEqual(a, b) }
	return a.Title == b.Title && slices.EqualFunc(a.Fields, b.Fields, same) && slices.Equal(a.Warnings, b.Warnings)
}
