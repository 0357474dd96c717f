package tool

import (
	"encoding/json"
	"errors"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/gowebpki/jcs"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/strictjson"
)

// Remote makes a tool that somebody else answers, from a name, a description and a JSON Schema of an object, which come
// from outside: what cannot be such a tool is an error that says why.
func Remote(name, description string, schema json.RawMessage) (*Tool, error) {
	if !validName.MatchString(name) {
		return nil, errors.New("a name of up to 63 letters, digits, '_', '.' and '-' that begins with a letter is needed")
	}
	in, err := objectSchema(schema)
	if err != nil {
		return nil, err
	}
	t := &Tool{Spec: Spec{Name: name, Description: description, Schema: schema, Approval: NotRequired}}
	t.normalize = func(args json.RawMessage) (json.RawMessage, error) {
		if err := strictjson.Check(args); err != nil {
			return nil, err
		}
		if err := in.check(args); err != nil {
			return nil, err
		}
		canonical, err := jcs.Transform(args)
		if err != nil {
			return nil, fault.Invalid("", "a number is out of range").Because(err)
		}
		return canonical, nil
	}
	t.recipients = func(json.RawMessage) ([]string, error) { return nil, nil }
	t.preview = func(json.RawMessage) (Preview, error) { return Preview{Title: name}, nil }
	t.summary = func(json.RawMessage) string { return "Did " + name + "." }
	return t, nil
}

// objectSchema reads a JSON Schema of an object, which is what arguments are.
func objectSchema(raw json.RawMessage) (schema, error) {
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return schema{}, errors.New("a JSON Schema is needed")
	}
	if s.Type != "object" {
		return schema{}, errors.New("a JSON Schema of type object is needed")
	}
	r, err := s.Resolve(nil)
	if err != nil {
		return schema{}, errors.New("a JSON Schema that refers to nothing outside of itself, with patterns of RE2, is needed")
	}
	return schema{r}, nil
}

// Elsewhere is the tool as one that somebody else carries out, and asks for where that is needed.
func (t *Tool) Elsewhere() *Tool {
	c := *t
	c.Approval = NotRequired
	c.prepare, c.execute, c.reconcile = nil, nil, nil
	return &c
}
