package tool

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/schema"
)

// Remote returns a tool whose calls are answered outside of this program. Its name, its description and the JSON Schema
// of its arguments come from outside too. Arguments are always an object, so the schema can leave out its type. If
// something is unusable, Remote returns an error. For the schema it is a ValidationError whose field is the place in
// the schema (see [schema.Import]).
func Remote(name, description string, raw json.RawMessage) (*Tool, error) {
	return remote(name, description, raw, false)
}

// remote returns the tool of [Remote]. With defaults, missing arguments get the schema's defaults, unless one of those
// does not fit the schema.
func remote(name, description string, raw json.RawMessage, defaults bool) (*Tool, error) {
	if !validName.MatchString(name) {
		return nil, errors.New("need a name of up to 63 letters, digits, '_', '.' and '-' that begins with a " +
			"letter")
	}
	s, err := schema.ImportArguments(raw)
	if err != nil {
		return nil, err
	}
	in, err := objectSchema(s, defaults)
	if err != nil && defaults {
		defaults = false
		in, err = objectSchema(s, false)
	}
	if err != nil {
		return nil, inSchema(err)
	}
	shown, err := declaredSchema(s)
	if err != nil {
		return nil, inSchema(err)
	}
	return &Tool{
		Spec: Spec{Name: name, Description: description, Schema: shown, Class: ClassRead, Approval: NotRequired},
		functions: &declared{Declaration: Declaration{Name: name}, normal: affordable(in,
			func(args json.RawMessage) (json.RawMessage, error) { return in.normalize(args, defaults) })},
	}, nil
}

// inSchema returns err as a ValidationError. Without a place in the schema, the error applies to the whole schema.
func inSchema(err error) error {
	var f *fault.Error
	if errors.As(err, &f) {
		return err
	}
	return fault.Invalid("", "%s", err)
}

// affordable refuses arguments that are too expensive to check against a stranger's schema.
func affordable(in checker,
	normalize func(json.RawMessage) (json.RawMessage, error)) func(json.RawMessage) (json.RawMessage, error) {
	each, patterns := 1+countChoices(in.schema), patternsOf(in.schema)
	tooMuch := func(args json.RawMessage) bool {
		return countValues(args)*each > maxChecks || len(args)*patterns > maxMatching
	}
	return func(args json.RawMessage) (json.RawMessage, error) {
		more := fault.Invalid("", "too large to check against this tool's schema")
		if tooMuch(args) {
			return nil, more
		}
		args, err := in.meant(args) // a string may contain more values
		if err != nil {
			return nil, err
		}
		if tooMuch(args) {
			return nil, more
		}
		return normalize(args)
	}
}

// maxChecks limits the cost of checking a call of a stranger's tool: the number of its values, times the number of
// schemas that each value may be checked against. Without it, a list of 30,000 numbers that each had one of 1,000 types
// kept a processor busy for a minute.
const maxChecks = 100_000

// maxMatching limits the cost of matching a call's strings with a stranger's patterns: the bytes of the arguments,
// times the bytes of the patterns.
const maxMatching = 50_000_000

// countValues returns the number of tokens in JSON, including names and the ends of lists. It stops at the first syntax
// error.
func countValues(args json.RawMessage) (n int) {
	for dec := jsontext.NewDecoder(bytes.NewReader(args)); ; n++ {
		if _, err := dec.ReadToken(); err != nil {
			return n
		}
	}
}

// countChoices returns the number of schemas that a value may be checked against.
func countChoices(s *jsonschema.Schema) (n int) {
	for p := range schema.Alternatives(s) {
		n += 1 + countChoices(p)
	}
	for p := range schema.Inside(s) {
		n += countChoices(p)
	}
	if s.PatternProperties != nil || s.PropertyNames != nil || s.Contains != nil {
		n++
	}
	return n
}

// patternsOf returns the total length of a schema's patterns.
func patternsOf(s *jsonschema.Schema) (n int) {
	n = len(s.Pattern)
	for name := range s.PatternProperties {
		n += len(name)
	}
	for p := range schema.Alternatives(s) {
		n += patternsOf(p)
	}
	for p := range schema.Inside(s) {
		n += patternsOf(p)
	}
	return n
}

// AsRemote returns a copy of the tool whose calls are run, and if necessary approved, outside of this process.
func (t *Tool) AsRemote() *Tool {
	c := *t
	c.Approval = NotRequired
	c.place, c.reads, c.has.rule = nil, nil, false // the run may be in another store
	c.has.prepare, c.has.execute, c.has.reconcile, c.has.lookUp = false, false, false, false
	c.has.limit, c.has.interrupt = false, false
	c.functions = elsewhere{t.functions}
	return &c
}

// elsewhere are the functions of a call that is judged outside of this process. In this process the call has no
// recipients, so the policy asks for no approval of them.
type elsewhere struct{ functions }

func (elsewhere) targets(json.RawMessage) ([]Target, error) { return nil, nil }

// ServerTools states which tools of an MCP server are in use, for users and operators.
type ServerTools struct {
	Server  string
	Tools   []string // names that the model uses
	Unused  []UnusedTool
	Problem string // why the last request to the server failed; or empty
}

// UnusedTool is a tool of a server that no model can use.
type UnusedTool struct {
	Tool   string // the server's name for the tool, in quotes
	Reason string
}
