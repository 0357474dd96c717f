package schema

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// keyword adds one keyword to s, or returns schemas that must hold in addition to s. It ignores definitions, which are
// read where a reference names them, and annotations and unknown keywords.
func (i *importer) keyword(s *jsonschema.Schema, at place, key string, v any, depth int) (parts []*jsonschema.Schema,
	err error) {
	if isAbsent(key, v) {
		return nil, nil
	}
	if into := numberOf(s, key); into != nil {
		return nil, number(s, into, at, key, v)
	}
	if into := countOf(s, key); into != nil {
		return nil, count(into, at, key, v)
	}
	if into := schemaOf(s, key); into != nil {
		if _, tuple := v.([]any); tuple && key == "items" { // a tuple, before draft 2020-12
			s.PrefixItems, err = i.list(at, v, depth)
			return nil, err
		}
		*into, err = i.node(at, v, depth+1)
		return nil, err
	}
	if into := schemasOf(s, key); into != nil {
		*into, err = i.properties(at, v, depth)
		return nil, err
	}
	if into := listOf(s, key); into != nil {
		*into, err = i.list(at, v, depth)
		return nil, err
	}
	switch key {
	case "allOf":
		return i.list(at, v, depth-1) // the schemas are merged into this one
	case "$ref", "$dynamicRef", "$recursiveRef": // within one document, all three lead to the same place
		p, err := i.reference(at, v, depth)
		return []*jsonschema.Schema{p}, err
	case "dependencies":
		return nil, i.dependencies(s, at, v, depth)
	case "pattern":
		return nil, i.pattern(s, at, v)
	case "multipleOf":
		return nil, multipleOf(s, at, v)
	case "patternProperties":
		return nil, i.patternProperties(s, at, v, depth)
	}
	return nil, i.value(s, at, key, v)
}

// isAbsent reports whether a keyword counts as left out. Programs write null or an empty list for a keyword without a
// value, and some languages write an empty object for an empty list.
func isAbsent(key string, v any) bool {
	switch v := v.(type) {
	case nil:
		return key != "const" && key != "default"
	case []any:
		return len(v) == 0 && slices.Contains([]string{"enum", "anyOf", "oneOf", "allOf", "items", "prefixItems"}, key)
	case map[string]any:
		return len(v) == 0 && slices.Contains([]string{"enum", "required"}, key)
	}
	return false
}

// value adds a keyword whose value contains no schema.
func (i *importer) value(s *jsonschema.Schema, at place, key string, v any) (err error) {
	switch key {
	case "type":
		return readType(s, at, v)
	case "description":
		s.Description, _ = v.(string)
	case "format":
		s.Format, _ = v.(string)
	case "const":
		var exact any
		exact, err = exactly(at, v)
		s.Const = &exact
	case "default":
		// otherwise the default is only an annotation that no call could repeat
		if exact, err := exactly(at, v); err == nil {
			s.Default = text(exact)
		}
	case "enum":
		s.Enum, err = values(at, v)
	case "required":
		if name, ok := v.(string); ok {
			v = []any{name}
		}
		if _, older := v.(bool); !older { // in draft 3 a boolean of the property, not a list of the object
			s.Required, err = texts(at, v)
		}
	case "dependentRequired":
		s.DependentRequired, err = dependentRequired(at, v)
	case "uniqueItems":
		s.UniqueItems = v == true
	}
	return err
}

// dependencies reads the keyword that draft 2019-09 split into dependentRequired and dependentSchemas.
func (i *importer) dependencies(s *jsonschema.Schema, at place, v any, depth int) error {
	fields, ok := v.(map[string]any)
	if !ok {
		return refused(at, "must be an object")
	}
	lists, schemas := map[string]any{}, map[string]any{}
	for name, one := range fields {
		if _, list := one.([]any); list {
			lists[name] = one
		} else {
			schemas[name] = one
		}
	}
	var err error
	if s.DependentRequired, err = dependentRequired(at, lists); err != nil || len(schemas) == 0 {
		return err
	}
	s.DependentSchemas, err = i.properties(at, schemas, depth)
	return err
}

func dependentRequired(at place, v any) (map[string][]string, error) {
	fields, ok := v.(map[string]any)
	if !ok {
		return nil, refused(at, "must be an object: names and lists of names")
	}
	var out map[string][]string
	for name, list := range fields {
		needed, err := texts(at.to(name), list)
		if err != nil {
			return nil, err
		}
		if out == nil {
			out = map[string][]string{}
		}
		out[name] = needed
	}
	return out, nil
}

// older translates keywords that earlier drafts and OpenAPI 3.0 use in a different way.
func older(s *jsonschema.Schema, fields map[string]any) {
	if fields["exclusiveMinimum"] == true {
		s.Minimum, s.ExclusiveMinimum = nil, s.Minimum
	}
	if fields["exclusiveMaximum"] == true {
		s.Maximum, s.ExclusiveMaximum = nil, s.Maximum
	}
	if s.AdditionalItems != nil { // additionalItems has no meaning without a tuple
		if s.PrefixItems != nil {
			s.Items = s.AdditionalItems
		}
		s.AdditionalItems = nil
	}
}

// texts reads a list of strings and drops duplicates.
func texts(at place, v any) ([]string, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, refused(at, "must be a list of names")
	}
	out := []string{}
	for _, one := range list {
		name, ok := one.(string)
		if !ok {
			return nil, refused(at, "must be a list of names")
		}
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out, nil
}

// values reads the allowed values. It leaves out values that no call can have, unless no other value is left.
func values(at place, v any) (out []any, err error) {
	list, ok := v.([]any)
	if _, object := v.(map[string]any); !ok && !object { // a single value
		list, ok = []any{v}, true
	}
	if !ok {
		return nil, refused(at, "must be a list of at least one value")
	}
	var wrong error
	for n, one := range list {
		exact, err := exactly(at.to(strconv.Itoa(n)), one)
		if err != nil {
			wrong = err
			continue
		}
		out = append(out, exact)
	}
	if len(out) == 0 {
		return nil, wrong
	}
	return out, nil
}

// exactly returns v with its numbers as float64. It returns an error if that would change a number, because no call
// could then have the value.
func exactly(at place, v any) (_ any, err error) {
	switch v := v.(type) {
	case json.Number:
		if !strictjson.Survives(v.String()) {
			return nil, refused(at, "this number has more digits than JSON keeps exactly")
		}
		return v.Float64()
	case []any:
		out := make([]any, len(v))
		for n := range v {
			if out[n], err = exactly(at.to(strconv.Itoa(n)), v[n]); err != nil {
				return nil, err
			}
		}
		return out, nil
	case map[string]any:
		out := map[string]any{}
		for name, one := range v {
			if out[name], err = exactly(at.to(name), one); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	return v, nil
}

// number reads a bound. A 64-bit integer that float64 cannot represent becomes the nearest double within the bound. A
// bound that is not a number, such as a date, becomes a sentence in the description.
func number(s *jsonschema.Schema, into **float64, at place, key string, v any) error {
	if _, older := v.(bool); older {
		return nil // handled by older
	}
	given := numeral(v)
	f, err := given.Float64()
	if text, ok := v.(string); ok && err != nil && !errors.Is(err, strconv.ErrRange) {
		s.Description = strings.TrimSpace(s.Description + "\nIts " + key + " is " + clip.Text(text, 100))
		return nil
	}
	if err != nil {
		return refused(at, "a number is required here")
	}
	exact, ok := new(big.Float).SetPrec(200).SetString(given.String())
	if ok && !strictjson.Survives(given.String()) {
		switch c := big.NewFloat(f).Cmp(exact); {
		case c > 0 && strings.HasSuffix(key, "aximum"):
			f = math.Nextafter(f, math.Inf(-1))
		case c < 0 && strings.HasSuffix(key, "inimum"):
			f = math.Nextafter(f, math.Inf(1))
		}
	}
	*into = &f
	return nil
}

// multipleOf keeps a factor that a double represents exactly. For other factors, such as 0.01, the validator's division
// would wrongly refuse 19.99. Such a factor becomes a sentence in the description, and the code that answers the call
// checks it.
func multipleOf(s *jsonschema.Schema, at place, v any) error {
	given := numeral(v)
	f, err := given.Float64()
	if err != nil || f <= 0 {
		return refused(at, "a number above 0 is required here")
	}
	if exact, ok := new(big.Rat).SetString(given.String()); ok && exact.Cmp(new(big.Rat).SetFloat64(f)) == 0 {
		s.MultipleOf = &f
		return nil
	}
	s.Description = strings.TrimSpace(s.Description + "\nIt must be a multiple of " + given.String())
	return nil
}

// numeral returns a number, which some programs write as a string.
func numeral(v any) json.Number {
	if text, ok := v.(string); ok {
		return json.Number(text)
	}
	given, _ := v.(json.Number)
	return given
}

// count reads a size. A size above math.MaxInt32 becomes math.MaxInt32. A minimum below 0 restricts nothing.
func count(into **int, at place, key string, v any) error {
	f, err := numeral(v).Float64()
	if err == nil && f < 0 && strings.HasPrefix(key, "min") {
		return nil
	}
	if err != nil || f < 0 || f != math.Trunc(f) {
		return refused(at, "must be a whole number of 0 or more")
	}
	n := int(min(f, math.MaxInt32))
	*into = &n
	return nil
}

func numberOf(s *jsonschema.Schema, key string) **float64 {
	return map[string]**float64{"minimum": &s.Minimum, "maximum": &s.Maximum,
		"exclusiveMinimum": &s.ExclusiveMinimum, "exclusiveMaximum": &s.ExclusiveMaximum}[key]
}

func countOf(s *jsonschema.Schema, key string) **int {
	return map[string]**int{"minLength": &s.MinLength, "maxLength": &s.MaxLength, "minItems": &s.MinItems,
		"maxItems": &s.MaxItems, "minContains": &s.MinContains, "maxContains": &s.MaxContains,
		"minProperties": &s.MinProperties, "maxProperties": &s.MaxProperties}[key]
}

func schemaOf(s *jsonschema.Schema, key string) **jsonschema.Schema {
	return map[string]**jsonschema.Schema{"items": &s.Items, "contains": &s.Contains, "not": &s.Not, "if": &s.If,
		"then": &s.Then, "else": &s.Else, "propertyNames": &s.PropertyNames, "additionalItems": &s.AdditionalItems,
		"additionalProperties": &s.AdditionalProperties, "unevaluatedItems": &s.UnevaluatedItems,
		"unevaluatedProperties": &s.UnevaluatedProperties}[key]
}

func schemasOf(s *jsonschema.Schema, key string) *map[string]*jsonschema.Schema {
	return map[string]*map[string]*jsonschema.Schema{"properties": &s.Properties,
		"dependentSchemas": &s.DependentSchemas}[key]
}

func listOf(s *jsonschema.Schema, key string) *[]*jsonschema.Schema {
	return map[string]*[]*jsonschema.Schema{"anyOf": &s.AnyOf, "oneOf": &s.OneOf, "prefixItems": &s.PrefixItems}[key]
}
