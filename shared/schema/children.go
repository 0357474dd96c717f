package schema

import (
	"iter"
	"maps"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
)

// Alternatives returns the schemas that are checked against the same value as s.
func Alternatives(s *jsonschema.Schema) iter.Seq[*jsonschema.Schema] {
	return present(slices.Concat(s.AllOf, s.AnyOf, s.OneOf, []*jsonschema.Schema{s.Not, s.If, s.Then, s.Else},
		slices.Collect(maps.Values(s.DependentSchemas))))
}

// Inside returns the schemas that are checked against parts of a value of s.
func Inside(s *jsonschema.Schema) iter.Seq[*jsonschema.Schema] {
	return present(slices.Concat(s.PrefixItems, []*jsonschema.Schema{s.Items, s.Contains, s.PropertyNames,
		s.AdditionalProperties, s.UnevaluatedItems, s.UnevaluatedProperties},
		slices.Collect(maps.Values(s.Properties)), slices.Collect(maps.Values(s.PatternProperties))))
}

func present(all []*jsonschema.Schema) iter.Seq[*jsonschema.Schema] {
	return slices.Values(slices.DeleteFunc(all, func(s *jsonschema.Schema) bool { return s == nil }))
}
