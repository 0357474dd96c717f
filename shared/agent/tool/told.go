package tool

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/base/clip"
)

// declaredSchema returns a schema in the form that the model sees. Gemini accepts only some JSON Schemas: a value must
// have a type or alternatives, a list must have items, and a required property must be declared. The parts that Gemini
// does not accept become text in the description. Arguments are checked against the original schema.
func declaredSchema(s *jsonschema.Schema) (json.RawMessage, error) {
	raw, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}
	if !simplify(fields) {
		return raw, nil // preserves the order of the properties
	}
	return json.Marshal(fields)
}

// anySchema returns the replacement for an empty schema.
func anySchema() map[string]any {
	var of []any
	for _, t := range []string{"string", "number", "boolean", "object"} {
		of = append(of, map[string]any{"type": t})
	}
	return map[string]any{"anyOf": of}
}

// simplify simplifies a schema in place and reports whether it changed anything.
func simplify(s map[string]any) (changed bool) {
	changed = inWords(s)
	for _, key := range []string{"anyOf", "oneOf"} {
		list, ok := s[key].([]any)
		// The alternatives only restrict a value whose type is known.
		if ok && slices.ContainsFunc(list, isUntyped) && s["type"] != nil {
			delete(s, key)
			changed = true
			continue
		}
		for i := range list {
			changed = mapSchemas(list[i], func(v any) { list[i] = v }) || changed
		}
	}
	if more, ok := s["additionalProperties"].(map[string]any); ok && len(more) > 0 {
		changed = mapSchemas(more, func(v any) { s["additionalProperties"] = v }) || changed
	}
	properties, _ := s["properties"].(map[string]any)
	for name, p := range properties {
		if p == false { // the property is forbidden
			delete(properties, name)
			changed = true
			continue
		}
		changed = mapSchemas(p, func(v any) { properties[name] = v }) || changed
	}
	if s["items"] != nil || hasType(s, "array") {
		changed = mapSchemas(s["items"], func(v any) { s["items"] = v }) || changed
	}
	if required, ok := s["required"].([]any); ok {
		known := slices.DeleteFunc(slices.Clone(required),
			func(name any) bool { return properties[name.(string)] == nil })
		if len(known) < len(required) {
			s["required"], changed = known, true
		}
	}
	return changed
}

// plainKeywords are the keywords that Gemini gets unchanged.
var plainKeywords = []string{"type", "description", "title", "enum", "const", "default", "properties", "required",
	"items", "anyOf", "oneOf", "allOf", "additionalProperties", "minimum", "maximum", "exclusiveMinimum",
	"exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems", "pattern", "$ref", "$defs", "definitions"}

// maxWords is the maximum length of the schema text that is added to a description, in bytes.
const maxWords = 1000

// inWords moves the other keywords of a schema into its description, and reports whether there were any.
func inWords(s map[string]any) bool {
	rest := map[string]any{}
	for key, v := range s {
		if !slices.Contains(plainKeywords, key) {
			rest[key] = v
			delete(s, key)
		}
	}
	if len(rest) == 0 {
		return false
	}
	words, err := json.Marshal(rest)
	if err != nil { // unreachable: the values were decoded from JSON
		panic(err)
	}
	said, _ := s["description"].(string)
	s["description"] = strings.TrimSpace(said + "\nIt must also fit this JSON Schema: " +
		clip.Text(string(words), maxWords))
	return true
}

// mapSchemas simplifies a nested schema, or replaces an empty one. It reports whether it changed anything.
func mapSchemas(v any, replace func(any)) bool {
	s, ok := v.(map[string]any)
	if ok && !isUntyped(v) {
		return simplify(s)
	}
	inWords(s)
	with := anySchema()
	if text, ok := s["description"]; ok {
		with["description"] = text
	}
	replace(with)
	return true
}

// isUntyped reports whether a schema has neither a type nor alternatives.
func isUntyped(v any) bool {
	s, ok := v.(map[string]any)
	return !ok || s["type"] == nil && s["anyOf"] == nil && s["oneOf"] == nil && s["$ref"] == nil
}

func hasType(s map[string]any, name string) bool {
	list, _ := s["type"].([]any)
	return s["type"] == name || slices.Contains(list, any(name))
}
