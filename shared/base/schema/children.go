package schema

import (
	"iter"
	"maps"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
)

// Alternatives returns the subschemas of s that apply to the same value as s, such as those under allOf and not.
func Alternatives(s *jsonschema.Schema) iter.Seq[*jsonschema.Schema] {
	return present(slices.Concat(s.AllOf, s.AnyOf, s.OneOf, []*jsonschema.Schema{s.Not, s.If, s.Then, s.Else},
		slices.Collect(maps.Values(s.DependentSchemas))))
}

// Inside returns the subschemas of s that apply to a part of the value, such as those of its properties and items.
func Inside(s *jsonschema.Schema) iter.Seq[*jsonschema.Schema] {
	return present(slices.Concat(s.PrefixItems, []*jsonschema.Schema{s.Items, s.Contains, s.PropertyNames,
		s.AdditionalProperties, s.UnevaluatedItems, s.UnevaluatedProperties},
		slices.Collect(maps.Values(s.Properties)), slices.Collect(maps.Values(s.PatternProperties))))
}

func present(all []*jsonschema.Schema) iter.Seq[*jsonschema.Schema] {
	return slices.Values(slices.DeleteFunc(all, func(s *jsonschema.Schema) bool { return s == nil }))
}
