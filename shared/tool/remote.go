package tool

import (
	"encoding/json"
	"errors"

	"github.com/google/jsonschema-go/jsonschema"
)

// Remote makes a tool that somebody else answers, from a name, a description and a JSON Schema of an object, which come
// from outside: what cannot be such a tool is an error that says why.
func Remote(name, description string, raw json.RawMessage) (*Tool, error) {
	if !validName.MatchString(name) {
		return nil, errors.New("a name of up to 63 letters, digits, '_', '.' and '-' that begins with a letter is needed")
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, errors.New("a JSON Schema is needed")
	}
	in, err := objectSchema(&s, false)
	if err != nil {
		return nil, err
	}
	t := bare(Spec{Name: name, Description: description, Schema: raw, Approval: NotRequired})
	t.normalize = func(args json.RawMessage) (json.RawMessage, error) { return in.normalize(args, false) }
	return t, nil
}

// Elsewhere is the tool as one that somebody else carries out, and asks for where that is needed.
func (t *Tool) Elsewhere() *Tool {
	c := *t
	c.Approval = NotRequired
	c.prepare, c.execute, c.reconcile = nil, nil, nil
	return &c
}
