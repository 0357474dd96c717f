package tool

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// meant corrects common deviations in arguments from clients and models if only one reading fits the schema. A null for
// an optional field means that the field is absent. A string that is the JSON of a list, an object, a number, true or
// false means that value, if the schema accepts no string there. The corrected arguments are the ones that are shown,
// approved and run. The schema check decides about everything else.
func (s checker) meant(args json.RawMessage) (json.RawMessage, error) {
	v, ok := decodeExactly(args)
	if !ok {
		return args, nil // the schema check returns the error
	}
	v, changed := read(s.schema, v)
	if !changed {
		return args, nil
	}
	return strictjson.Marshal(v)
}

// decodeExactly decodes JSON and keeps its numbers as they are written.
func decodeExactly(raw []byte) (v any, ok bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	err := dec.Decode(&v)
	return v, err == nil && !dec.More()
}

// read returns the value that the schema means, and whether it differs from v. It changes lists and objects in place.
// Of the schema's alternatives, it uses the only one that accepts the type of the value.
func read(s *jsonschema.Schema, v any) (_ any, changed bool) {
	if s == nil {
		return v, false
	}
	if text, ok := v.(string); ok && !accepts(s, v) {
		if inner, ok := written(text); ok && accepts(s, inner) {
			inner, _ = read(s, inner)
			return inner, true
		}
	}
	for _, choice := range [][]*jsonschema.Schema{s.AnyOf, s.OneOf} {
		if one := onlyOne(choice, v); one != nil {
			better, other := read(one, v)
			v, changed = better, changed || other
		}
	}
	switch v := v.(type) {
	case map[string]any:
		return v, readFields(s, v) || changed
	case []any:
		for i, item := range v {
			of := s.Items
			if i < len(s.PrefixItems) {
				of = s.PrefixItems[i]
			}
			better, other := read(of, item)
			v[i], changed = better, changed || other
		}
	}
	return v, changed
}

// onlyOne returns the only alternative that accepts the type of the value, or nil.
func onlyOne(choice []*jsonschema.Schema, v any) (one *jsonschema.Schema) {
	for _, s := range choice {
		switch {
		case !accepts(s, v):
		case one != nil:
			return nil
		default:
			one = s
		}
	}
	return one
}

func readFields(s *jsonschema.Schema, fields map[string]any) (changed bool) {
	for name, value := range fields {
		p := s.Properties[name]
		switch {
		case p == nil:
			p = s.AdditionalProperties
		case value == nil && !accepts(p, nil) && !slices.Contains(s.Required, name):
			delete(fields, name)
			changed = true
			continue
		}
		better, other := read(p, value)
		fields[name], changed = better, changed || other
	}
	return changed
}

// numeral matches a number in its only canonical form.
var numeral = lazyregexp.New(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?$`)

// written returns the value if a string is the JSON of a list, an object, a number, true or false.
func written(text string) (v any, ok bool) {
	text = strings.TrimSpace(text)
	switch {
	case text == "true", text == "false":
	case numeral.MatchString(text):
		if !strictjson.Survives(text) {
			return nil, false
		}
	case strings.HasPrefix(text, "["), strings.HasPrefix(text, "{"):
		if strictjson.Exact([]byte(`{"v":`+text+`}`)) != nil {
			return nil, false
		}
	default:
		return nil, false
	}
	return decodeExactly([]byte(text))
}

// accepts reports whether the schema accepts the type of the value. If the value is an object with a field that names
// its kind, such as {"kind": "circle"}, the schema must accept that kind.
func accepts(s *jsonschema.Schema, v any) bool {
	if types := typesOf(s); len(types) > 0 && !slices.ContainsFunc(types, func(t string) bool { return isOf(t, v) }) {
		return false
	}
	if s.Enum != nil && !slices.ContainsFunc(s.Enum, func(one any) bool { return sameType(one, v) }) {
		return false
	}
	for _, choice := range [][]*jsonschema.Schema{s.AnyOf, s.OneOf} {
		if choice != nil && !slices.ContainsFunc(choice, func(one *jsonschema.Schema) bool { return accepts(one, v) }) {
			return false
		}
	}
	return (s.Const == nil || sameType(*s.Const, v)) && acceptsKind(s, v)
}

// acceptsKind reports whether the texts in the fields of an object are among those that the schema lists for them.
func acceptsKind(s *jsonschema.Schema, v any) bool {
	fields, _ := v.(map[string]any)
	for name, value := range fields {
		p := s.Properties[name]
		if _, text := value.(string); p == nil || !text {
			continue
		}
		if p.Const != nil && *p.Const != value || p.Enum != nil && !slices.Contains(p.Enum, value) {
			return false
		}
	}
	return true
}

// typesOf returns the types that a schema names.
func typesOf(s *jsonschema.Schema) []string {
	if s.Type != "" {
		return []string{s.Type}
	}
	return s.Types
}

// isOf reports whether a value has a JSON Schema type.
func isOf(kind string, v any) bool {
	if kind == "integer" {
		n, ok := v.(json.Number)
		f, err := n.Float64()
		return ok && err == nil && f == math.Trunc(f)
	}
	return kind == kindOf(v)
}

func sameType(a, b any) bool { return kindOf(a) == kindOf(b) }

// kindOf returns the JSON Schema type of a value. For every number it returns "number", not "integer".
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "string"
	case bool:
		return "boolean"
	case []any:
		return "array"
	case map[string]any:
		return "object"
	}
	return "number"
}
