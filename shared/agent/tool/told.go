package tool

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/base/clip"
)

// declaredSchema returns a schema as the model sees it. Gemini accepts fewer schemas than exist: a value must have a
// type or be one of several schemas, a list must have items, a required property must be described. What it does not
// accept is put into the description as words; arguments are checked against the original schema.
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

// anySchema returns the replacement of a schema without content.
func anySchema() map[string]any {
	var of []any
	for _, t := range []string{"string", "number", "boolean", "object"} {
		of = append(of, map[string]any{"type": t})
	}
	return map[string]any{"anyOf": of}
}

// simplify simplifies a schema in place, and reports whether it changed something.
func simplify(s map[string]any) (changed bool) {
	changed = inWords(s)
	for _, key := range []string{"anyOf", "oneOf"} {
		list, ok := s[key].([]any)
		if ok && slices.ContainsFunc(list, isUntyped) && s["type"] != nil { // constrains a value whose type is known
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
		if p == false { // it may not be given
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

// plainKeywords are those of which Gemini is told as they are.
var plainKeywords = []string{"type", "description", "title", "enum", "const", "default", "properties", "required",
	"items", "anyOf", "oneOf", "allOf", "additionalProperties", "minimum", "maximum", "exclusiveMinimum",
	"exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems", "pattern", "$ref", "$defs", "definitions"}

// maxWords is how much of a schema is told as words, in bytes.
const maxWords = 1000

// inWords moves the other keywords of a schema into its description.
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
	if err != nil { // it was decoded from JSON
		panic(err)
	}
	said, _ := s["description"].(string)
	s["description"] = strings.TrimSpace(said + "\nIt must also fit this JSON Schema: " +
		clip.Text(string(words), maxWords))
	return true
}

// mapSchemas simplifies a nested schema, or replaces one without content.
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
