package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
)

// both merges p into s, so that s requires everything that either requires.
func both(s, p *jsonschema.Schema) error {
	if err := bothTypes(s, p); err != nil {
		return err
	}
	if s.Description == "" {
		s.Description = p.Description
	}
	if s.Default == nil {
		s.Default = p.Default
	}
	for _, name := range p.Required {
		if !slices.Contains(s.Required, name) {
			s.Required = append(s.Required, name)
		}
	}
	s.Minimum, s.ExclusiveMinimum = larger(s.Minimum, p.Minimum), larger(s.ExclusiveMinimum, p.ExclusiveMinimum)
	s.Maximum, s.ExclusiveMaximum = smaller(s.Maximum, p.Maximum), smaller(s.ExclusiveMaximum, p.ExclusiveMaximum)
	s.MinLength, s.MinItems = larger(s.MinLength, p.MinLength), larger(s.MinItems, p.MinItems)
	s.MaxLength, s.MaxItems = smaller(s.MaxLength, p.MaxLength), smaller(s.MaxItems, p.MaxItems)
	s.MinProperties = larger(s.MinProperties, p.MinProperties)
	s.MaxProperties = smaller(s.MaxProperties, p.MaxProperties)
	if err := bothValues(s, p); err != nil {
		return err
	}
	if err := bothInside(s, p); err != nil {
		return err
	}
	choices(s, p)
	rules(s, p)
	return nil
}

// rules copies to s those keywords of p that cannot be merged one by one. If s has such keywords already, those of p
// are kept in a separate schema under allOf.
func rules(s, p *jsonschema.Schema) {
	ofS, ofP := ruled(s), ruled(p)
	if reflect.DeepEqual(ofP, jsonschema.Schema{}) || reflect.DeepEqual(ofS, ofP) {
		return
	}
	if !reflect.DeepEqual(ofS, jsonschema.Schema{}) {
		ofP.Properties = p.Properties // additionalProperties applies to properties that are not listed here
		s.AllOf = append(s.AllOf, &ofP)
		return
	}
	s.Pattern, s.Format, s.MultipleOf, s.UniqueItems = p.Pattern, p.Format, p.MultipleOf, p.UniqueItems
	s.PrefixItems, s.UnevaluatedItems = p.PrefixItems, p.UnevaluatedItems
	s.Contains, s.MinContains, s.MaxContains = p.Contains, p.MinContains, p.MaxContains
	s.PatternProperties, s.AdditionalProperties = p.PatternProperties, p.AdditionalProperties
	s.PropertyNames, s.UnevaluatedProperties = p.PropertyNames, p.UnevaluatedProperties
	s.DependentRequired, s.DependentSchemas = p.DependentRequired, p.DependentSchemas
	s.Not, s.If, s.Then, s.Else = p.Not, p.If, p.Then, p.Else
}

// ruled returns a schema with only the keywords that cannot be merged one by one.
func ruled(s *jsonschema.Schema) jsonschema.Schema {
	return jsonschema.Schema{Pattern: s.Pattern, Format: s.Format, MultipleOf: s.MultipleOf,
		UniqueItems: s.UniqueItems, PrefixItems: s.PrefixItems, UnevaluatedItems: s.UnevaluatedItems,
		Contains: s.Contains, MinContains: s.MinContains, MaxContains: s.MaxContains,
		PatternProperties: s.PatternProperties, AdditionalProperties: s.AdditionalProperties,
		PropertyNames: s.PropertyNames, UnevaluatedProperties: s.UnevaluatedProperties,
		DependentRequired: s.DependentRequired, DependentSchemas: s.DependentSchemas,
		Not: s.Not, If: s.If, Then: s.Then, Else: s.Else}
}

func bothTypes(s, p *jsonschema.Schema) error {
	ofS, ofP := typesOf(s), typesOf(p)
	if len(ofS) == 0 || len(ofP) == 0 {
		setTypes(s, slices.Concat(ofS, ofP))
		return nil
	}
	var common []string
	for _, t := range types {
		if covers(ofS, t) && covers(ofP, t) && (slices.Contains(ofS, t) || slices.Contains(ofP, t)) {
			common = append(common, t)
		}
	}
	if slices.Contains(common, "number") {
		common = slices.DeleteFunc(common, func(t string) bool { return t == "integer" })
	}
	if len(common) == 0 {
		return errors.New("two parts of this schema require different types")
	}
	setTypes(s, common)
	return nil
}

func covers(list []string, t string) bool {
	return slices.Contains(list, t) || t == "integer" && slices.Contains(list, "number")
}

func larger[N int | float64](a, b *N) *N {
	if a == nil || b != nil && *b > *a {
		return b
	}
	return a
}

func smaller[N int | float64](a, b *N) *N {
	if a == nil || b != nil && *b < *a {
		return b
	}
	return a
}

var errNoValue = errors.New("two parts of this schema have no allowed value in common")

// bothValues reduces const and enum to the values that both schemas allow.
func bothValues(s, p *jsonschema.Schema) error {
	if s.Const != nil && p.Const != nil && !bytes.Equal(text(*s.Const), text(*p.Const)) {
		return errNoValue
	}
	if s.Const == nil {
		s.Const = p.Const
	}
	if s.Enum == nil || p.Enum == nil {
		s.Enum = slices.Concat(s.Enum, p.Enum)
		return nil
	}
	allowed := map[string]bool{}
	for _, v := range p.Enum {
		allowed[string(text(v))] = true
	}
	s.Enum = slices.DeleteFunc(slices.Clone(s.Enum), func(v any) bool { return !allowed[string(text(v))] })
	if len(s.Enum) == 0 {
		return errNoValue
	}
	return nil
}

// text returns v as JSON with sorted object keys. v must come from decoded JSON.
func text(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

// bothInside merges the properties and the items.
func bothInside(s, p *jsonschema.Schema) error {
	for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
		switch {
		case s.Properties == nil:
			s.Properties = map[string]*jsonschema.Schema{name: p.Properties[name]}
		case s.Properties[name] == nil:
			s.Properties[name] = p.Properties[name]
		default:
			if err := both(s.Properties[name], p.Properties[name]); err != nil {
				return err
			}
		}
	}
	switch {
	case s.Items == nil:
		s.Items = p.Items
	case p.Items != nil:
		return both(s.Items, p.Items)
	}
	return nil
}

// choices merges anyOf and oneOf. If both schemas have the same keyword, the second list is kept under allOf, because
// both must hold.
func choices(s, p *jsonschema.Schema) {
	s.AllOf = append(s.AllOf, p.AllOf...)
	if s.AnyOf == nil {
		s.AnyOf = p.AnyOf
	} else if p.AnyOf != nil {
		s.AllOf = append(s.AllOf, &jsonschema.Schema{AnyOf: p.AnyOf})
	}
	if s.OneOf == nil {
		s.OneOf = p.OneOf
	} else if p.OneOf != nil {
		s.AllOf = append(s.AllOf, &jsonschema.Schema{OneOf: p.OneOf})
	}
}
