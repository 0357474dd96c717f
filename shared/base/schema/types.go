package schema

import (
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

var types = []string{"string", "number", "integer", "boolean", "array", "object", "null"}

// otherNames maps the names that programs use for types to JSON Schema's. "" permits any type.
var otherNames = map[string]string{
	"str": "string", "text": "string", "char": "string", "date": "string", "datetime": "string", "date-time": "string",
	"time": "string", "uuid": "string", "uri": "string", "url": "string", "email": "string", "file": "string",
	"binary": "string", "bytes": "string", "enum": "string",
	"int": "integer", "int32": "integer", "int64": "integer", "uint": "integer", "uint32": "integer",
	"uint64": "integer", "long": "integer", "short": "integer", "bigint": "integer",
	"float": "number", "float32": "number", "float64": "number", "double": "number", "decimal": "number",
	"numeric": "number",
	"bool":    "boolean",
	"list":    "array", "tuple": "array", "set": "array", "sequence": "array",
	"dict": "object", "dictionary": "object", "map": "object", "mapping": "object", "record": "object",
	"struct": "object", "hash": "object",
	"none": "null", "nil": "null", "nulltype": "null", "undefined": "null",
	"": "", "any": "", "unknown": "", "mixed": "", "json": "",
}

// readType reads one type or several. It also accepts the names that programming languages use, in any case, and
// several in one string, such as string|null.
func readType(s *jsonschema.Schema, at place, v any) error {
	if name, ok := v.(string); ok {
		v = []any{}
		for one := range strings.SplitSeq(name, "|") {
			v = append(v.([]any), one)
		}
	}
	given, ok := v.([]any)
	if !ok {
		return refused(at, "must be a list of names")
	}
	var list []string
	for _, one := range given {
		name, ok := one.(string)
		if one == nil {
			name, ok = "null", true
		}
		if !ok {
			return refused(at, "must be a list of names")
		}
		name = strings.ToLower(strings.TrimSpace(name)) // Gemini's schemas spell types in capitals
		if other, ok := otherNames[name]; ok {
			name = other
		}
		if name == "" {
			return nil
		}
		if !slices.Contains(types, name) {
			return refused(at, "a type is one of %s", strings.Join(types, ", "))
		}
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	setTypes(s, list)
	return nil
}

// typesOf returns the types that a schema permits. An empty list permits any type.
func typesOf(s *jsonschema.Schema) []string {
	if s.Type != "" {
		return []string{s.Type}
	}
	return s.Types
}

func setTypes(s *jsonschema.Schema, list []string) {
	s.Type, s.Types = "", list
	if len(list) == 1 {
		s.Type, s.Types = list[0], nil
	}
}

// nullable adds null to the types, the allowed values and the alternatives, as OpenAPI's keyword nullable requires.
func nullable(s *jsonschema.Schema) {
	if list := typesOf(s); len(list) > 0 && !slices.Contains(list, "null") {
		setTypes(s, append(slices.Clone(list), "null"))
	}
	if s.Const != nil {
		s.Const, s.Enum = nil, []any{*s.Const}
	}
	if s.Enum != nil && !slices.Contains(s.Enum, nil) {
		s.Enum = append(slices.Clone(s.Enum), nil)
	}
	for _, choice := range []*[]*jsonschema.Schema{&s.AnyOf, &s.OneOf} {
		if *choice != nil && !slices.ContainsFunc(*choice, permitsNull) {
			*choice = append(slices.Clone(*choice), &jsonschema.Schema{Type: "null"})
		}
	}
}

func permitsNull(s *jsonschema.Schema) bool {
	list := typesOf(s)
	return len(list) == 0 && s.Enum == nil && s.Const == nil || slices.Contains(list, "null")
}
