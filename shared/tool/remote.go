package tool

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/schema"
)

// Remote makes a tool that somebody else answers, from a name, a description and a JSON Schema of an object, which come
// from outside: what cannot be such a tool is an error that says why. Of the schema it is a ValidationError whose field is the
// place in it (see schema.Import).
func Remote(name, description string, raw json.RawMessage) (*Tool, error) {
	if !validName.MatchString(name) {
		return nil, errors.New("a name of up to 63 letters, digits, '_', '.' and '-' that begins with a letter is needed")
	}
	s, err := schema.Import(raw)
	if err != nil {
		return nil, err
	}
	in, err := objectSchema(s, false)
	if err != nil {
		return nil, err
	}
	shown, err := told(s)
	if err != nil {
		return nil, err
	}
	t := bare(Spec{Name: name, Description: description, Schema: shown, Approval: NotRequired})
	each := 1 + choices(s)
	t.normalize = func(args json.RawMessage) (json.RawMessage, error) {
		if valuesIn(args)*each > maxChecks {
			return nil, fault.Invalid("", "this is more than can be checked against this tool's schema")
		}
		return in.normalize(args, false)
	}
	return t, nil
}

// maxChecks bounds what a call of a remote tool costs to check: its values, times the schemas that each may be held against in
// turn. A list of 30,000 numbers, each of one of 1,000 kinds, kept a processor busy for a minute.
const maxChecks = 100_000

// valuesIn counts the values in JSON, each name and each end of a list among them, as far as it can be read.
func valuesIn(args json.RawMessage) (n int) {
	for dec := jsontext.NewDecoder(bytes.NewReader(args)); ; n++ {
		if _, err := dec.ReadToken(); err != nil {
			return n
		}
	}
}

// choices counts the schemas that a value may be held against in turn.
func choices(s *jsonschema.Schema) (n int) {
	if s == nil {
		return 0
	}
	for _, p := range s.Properties {
		n += choices(p)
	}
	for _, list := range [][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf} {
		for _, p := range list {
			n += 1 + choices(p)
		}
	}
	return n + choices(s.Items)
}

// Elsewhere is the tool as one that somebody else carries out, and asks for where that is needed.
func (t *Tool) Elsewhere() *Tool {
	c := *t
	c.Approval = NotRequired
	c.prepare, c.execute, c.reconcile = nil, nil, nil
	return &c
}
