package fakegemini

import (
	"encoding/json"
	"slices"
	"strings"
)

// checkSchema accepts a plain schema, in the vocabulary of JSON Schema or of OpenAPI: every value has a type (or one
// of several schemas), every list has items, and every required property is described.
func checkSchema(at string, raw json.RawMessage, root bool) error {
	var s struct {
		Type       json.RawMessage            `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
		Items      json.RawMessage            `json:"items"`
		Enum       []json.RawMessage          `json:"enum"`
		AnyOf      []json.RawMessage          `json:"anyOf"`
		OneOf      []json.RawMessage          `json:"oneOf"`
		Ref        string                     `json:"$ref"`
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return invalid("Invalid value at '%s': not a schema", at)
	}
	types, err := schemaTypes(at, s.Type)
	if err != nil {
		return err
	}
	switch {
	case root && !slices.Contains(types, "object"):
		return invalid("* GenerateContentRequest.%s: parameters schema should be of type OBJECT.", at)
	case len(types)+len(s.AnyOf)+len(s.OneOf) == 0 && s.Ref == "":
		return invalid("* GenerateContentRequest.%s.type: must be specified.", at)
	case slices.Contains(types, "array") && s.Items == nil:
		return invalid("* GenerateContentRequest.%s.items: missing field.", at)
	}
	for _, name := range s.Required {
		if _, ok := s.Properties[name]; !ok {
			return invalid("* GenerateContentRequest.%s.required: property %q is not defined", at, name)
		}
	}
	for name, p := range s.Properties {
		if err := checkSchema(at+".properties["+name+"]", p, false); err != nil {
			return err
		}
	}
	below := append(s.AnyOf, s.OneOf...)
	if s.Items != nil {
		below = append(below, s.Items)
	}
	for _, p := range below {
		if err := checkSchema(at+".items", p, false); err != nil {
			return err
		}
	}
	return nil
}

var knownTypes = []string{"string", "number", "integer", "boolean", "array", "object", "null"}

func schemaTypes(at string, raw json.RawMessage) ([]string, error) {
	var one string
	var many []string
	switch {
	case raw == nil:
		return nil, nil
	case json.Unmarshal(raw, &one) == nil:
		many = []string{one}
	case json.Unmarshal(raw, &many) != nil:
		return nil, invalid("Invalid value at '%s.type'", at)
	}
	for i := range many {
		if many[i] = strings.ToLower(many[i]); !slices.Contains(knownTypes, many[i]) {
			return nil, invalid("Invalid value at '%s.type' (TYPE_ENUM), %q", at, many[i])
		}
	}
	return many, nil
}
