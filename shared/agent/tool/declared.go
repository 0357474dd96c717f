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
	changed = dropForeign(s)
	changed = dropBlank(s) || changed
	changed = inWords(s, restrictions(s)...) || changed
	for _, key := range []string{"anyOf", "oneOf"} {
		list, _ := s[key].([]any)
		for i := range list {
			changed = mapSchemas(list[i], func(v any) { list[i] = v }) || changed
		}
	}
	if more, ok := s["additionalProperties"].(map[string]any); ok && len(more) > 0 {
		changed = mapSchemas(more, func(v any) { s["additionalProperties"] = v }) || changed
	}
	changed = declareRequired(s) || changed
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
	return changed
}

// dropForeign removes keywords that say nothing about a value of the schema's type, and that Gemini refuses there.
func dropForeign(s map[string]any) (changed bool) {
	if s["type"] == nil {
		return false
	}
	for kind, keys := range map[string][]string{"object": {"properties", "required", "additionalProperties"},
		"array": {"items"}} {
		for _, key := range keys {
			if s[key] != nil && !hasType(s, kind) {
				delete(s, key)
				changed = true
			}
		}
	}
	return changed
}

// dropBlank moves the empty text from the allowed values to the description, because Gemini refuses every request that
// has it as a value.
func dropBlank(s map[string]any) (changed bool) {
	values, _ := s["enum"].([]any)
	rest := slices.DeleteFunc(slices.Clone(values), func(v any) bool { return v == "" })
	if len(rest) == len(values) {
		return false
	}
	said, _ := s["description"].(string)
	if s["enum"] = rest; len(rest) == 0 {
		delete(s, "enum")
		s["description"] = strings.TrimSpace(said + "\nIt must be empty.")
		return true
	}
	s["description"] = strings.TrimSpace(said + "\nIt may also be empty.")
	return true
}

// restrictions returns the keywords with alternatives that only restrict a value whose type is known.
func restrictions(s map[string]any) (keys []string) {
	for _, key := range []string{"anyOf", "oneOf"} {
		list, ok := s[key].([]any)
		if ok && slices.ContainsFunc(list, isUntyped) && s["type"] != nil {
			keys = append(keys, key)
		}
	}
	return keys
}

// declareRequired declares the required properties that have no schema.
func declareRequired(s map[string]any) (changed bool) {
	required, _ := s["required"].([]any)
	properties, _ := s["properties"].(map[string]any)
	for _, name := range required {
		if properties[name.(string)] != nil {
			continue
		}
		if properties == nil {
			properties = map[string]any{}
			s["properties"] = properties
		}
		properties[name.(string)], changed = anySchema(), true
	}
	return changed
}

// plainKeywords are the keywords that Gemini gets unchanged.
var plainKeywords = []string{"type", "description", "title", "enum", "const", "default", "properties", "required",
	"items", "anyOf", "oneOf", "allOf", "additionalProperties", "minimum", "maximum", "exclusiveMinimum",
	"exclusiveMaximum", "minLength", "maxLength", "minItems", "maxItems", "pattern", "$ref", "$defs", "definitions"}

// maxWords is the maximum length of the schema text that is added to a description, in bytes.
const maxWords = 1000

// inWords moves the other keywords of a schema, and those in also, into its description. It reports whether there were
// any.
func inWords(s map[string]any, also ...string) bool {
	rest := map[string]any{}
	for key, v := range s {
		if !slices.Contains(plainKeywords, key) || slices.Contains(also, key) {
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

// mapSchemas simplifies a nested schema, or replaces one without a type. It reports whether it changed anything.
func mapSchemas(v any, replace func(any)) bool {
	s, ok := v.(map[string]any)
	inferred := ok && inferType(s)
	if ok && !isUntyped(v) {
		return simplify(s) || inferred
	}
	inWords(s, "enum", "const", "required", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength",
		"maxLength", "minItems", "maxItems", "pattern")
	with := anySchema()
	if text, ok := s["description"]; ok {
		with["description"] = text
	}
	replace(with)
	return true
}

// inferType adds the type that the other keywords of an untyped schema imply, and reports whether it did.
func inferType(s map[string]any) bool {
	if !isUntyped(s) {
		return false
	}
	values, _ := s["enum"].([]any)
	if v, ok := s["const"]; ok {
		values = []any{v}
	}
	isText := func(v any) bool { _, ok := v.(string); return ok }
	switch {
	case s["properties"] != nil:
		s["type"] = "object"
	case s["items"] != nil:
		s["type"] = "array"
	case len(values) > 0 && !slices.ContainsFunc(values, func(v any) bool { return !isText(v) }):
		s["type"] = "string"
	}
	return s["type"] != nil
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
