package plan

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/base/visible"
)

// reasoning is the argument of every call in which the model explains the call. It is the step Reason of ReAct.
const reasoning = "reasoning"

// MaxReasoning is the maximum length of a reasoning, in characters.
const MaxReasoning = 4000

// hasReasoning reports whether the tool itself has an argument with this name. Such a tool's arguments are not changed.
func hasReasoning(spec tool.Spec) bool {
	var s struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	return json.Unmarshal(spec.Schema, &s) == nil && s.Properties[reasoning] != nil
}

// WithReasoning returns the spec as the model sees it: with the required argument `reasoning`.
func WithReasoning(spec tool.Spec) (tool.Spec, error) {
	if hasReasoning(spec) {
		return spec, nil
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(spec.Schema, &s); err != nil {
		return spec, err
	}
	if s.Properties == nil {
		s.Properties = map[string]*jsonschema.Schema{}
	}
	s.Properties[reasoning] = &jsonschema.Schema{Type: "string",
		Description: "why this call is the next step, in one or two sentences"}
	s.Required = append([]string{reasoning}, s.Required...)
	schema, err := strictjson.Marshal(&s)
	spec.Schema = schema
	return spec, err
}

// TakeReasoning removes the reasoning from the model's arguments, before they are normalised and hashed. All other
// bytes stay unchanged, even if they do not fit the tool. The error is a ValidationError. It is for arguments that are
// not an object, and for a reasoning that is missing, blank, too long or not a string.
func TakeReasoning(spec tool.Spec, args json.RawMessage) (rest json.RawMessage, why string, err error) {
	if hasReasoning(spec) {
		return args, "", nil
	}
	if err := strictjson.Check(args); err != nil {
		return nil, "", err
	}
	dec := json.NewDecoder(bytes.NewReader(args))
	if _, err := dec.Token(); err != nil { // the opening brace
		return nil, "", fault.Invalid("", "the JSON could not be read").Because(err)
	}
	out := []byte{'{'}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, "", fault.Invalid("", "the JSON could not be read").Because(err)
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, "", fault.Invalid("", "the JSON could not be read").Because(err)
		}
		if name == reasoning {
			if json.Unmarshal(value, &why) != nil {
				return nil, "", fault.Invalid(reasoning, "must be a text")
			}
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, strictjson.Text(name.(string))...), ':'), value...)
	}
	switch {
	case visible.Blank(why):
		return nil, "", fault.Invalid(reasoning, "say why this call is the next step")
	case utf8.RuneCountInString(why) > MaxReasoning:
		return nil, "", fault.Invalid(reasoning, "more than %d characters", MaxReasoning)
	}
	return append(out, '}'), why, nil
}
