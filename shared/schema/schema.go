// Package schema imports JSON Schemas from untrusted sources, such as pages. Limits apply before anything is expanded,
// so that no schema can loop, grow without end or make validation costly.
package schema

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/clip"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/strictjson"
)

// The limits of one schema, counted after references are expanded.
const (
	MaxBytes = 64 << 10
	MaxDepth = 16 // nesting of schemas
	MaxNodes = 1000
)

// dropped are the keywords that are removed, because calls are not validated against them.
var dropped = []string{"$schema", "title", "format", "examples", "additionalProperties"}

var types = []string{"string", "number", "integer", "boolean", "array", "object", "null"}

// Import imports a schema. It keeps type, properties, required, items, enum, const, description, default, nullable (as
// the type null) and the minimum and maximum of numbers, lengths and items; expands local references; merges allOf; and
// keeps anyOf and oneOf. It drops $schema, title, format, examples and additionalProperties. Any other keyword, and a
// schema that contains itself, is a ValidationError whose field is the JSON pointer of the keyword, without its first
// slash.
func Import(raw json.RawMessage) (*jsonschema.Schema, error) {
	if len(raw) > MaxBytes {
		return nil, fault.Invalid("", "a JSON Schema of at most %d bytes is needed", MaxBytes)
	}
	if err := strictjson.Exact(raw); err != nil {
		return nil, err
	}
	var doc any
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, fault.Invalid("", "this is not JSON").Because(err)
	}
	i := &importer{doc: doc, open: map[string]bool{}}
	return i.node(place{}, doc, 0)
}

// place is the list of a JSON pointer's reference tokens.
type place []string

func (p place) to(names ...string) place { return append(slices.Clip(p), names...) }

var escaper = strings.NewReplacer("~", "~0", "/", "~1")

// pointer returns the place in the form of RFC 6901, without the first slash and cut to a readable length.
func (p place) pointer() string {
	steps := make([]string, len(p))
	for i, s := range p {
		steps[i] = escaper.Replace(s)
	}
	return strings.Join(steps, "/")
}

func refused(at place, format string, args ...any) error {
	return fault.Invalid(clip.Text(at.pointer(), 200), format, args...)
}

type importer struct {
	doc   any
	open  map[string]bool // the places that are being read: a reference to one of them would never end
	nodes int
}

// node imports the schema at a place.
func (i *importer) node(at place, v any, depth int) (*jsonschema.Schema, error) {
	if i.nodes++; i.nodes > MaxNodes {
		return nil, refused(at, "the schema has more than %d parts once its references are written out", MaxNodes)
	}
	if depth > MaxDepth {
		return nil, refused(at, "the schema is nested deeper than %d levels", MaxDepth)
	}
	if v == true {
		return &jsonschema.Schema{}, nil
	}
	fields, ok := v.(map[string]any)
	if !ok {
		return nil, refused(at, "a JSON Schema is needed here: an object")
	}
	i.open[at.pointer()] = true
	defer delete(i.open, at.pointer())
	s := &jsonschema.Schema{}
	var parts []*jsonschema.Schema // schemas that must hold in addition to s
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		more, err := i.keyword(s, at.to(key), key, fields[key], depth)
		if err != nil {
			return nil, err
		}
		parts = append(parts, more...)
	}
	for _, p := range parts {
		if err := both(s, p); err != nil {
			return nil, refused(at, "%s", err.Error())
		}
	}
	if fields["nullable"] == true { // beside a reference, it applies to the referenced schema
		nullable(s)
	}
	return s, nil
}

// keyword adds one keyword to s, or returns schemas that must hold in addition to s.
func (i *importer) keyword(s *jsonschema.Schema, at place, key string, v any, depth int) (parts []*jsonschema.Schema,
	err error) {
	switch {
	case slices.Contains(dropped, key), key == "$defs", key == "definitions":
		// Definitions are read where a reference names them.
		return nil, nil
	case slices.Contains(numbers, key):
		return nil, number(s, at, key, v)
	case slices.Contains(counts, key):
		return nil, count(s, at, key, v)
	}
	switch key {
	case "type":
		return nil, readType(s, at, v)
	case "description":
		text, ok := v.(string)
		if !ok {
			return nil, refused(at, "a text is needed here")
		}
		s.Description = text
	case "nullable":
		if _, ok := v.(bool); !ok {
			return nil, refused(at, "true or false is needed here")
		}
	case "const":
		s.Const = &v
	case "default":
		s.Default, err = json.Marshal(v)
	case "enum":
		list, ok := v.([]any)
		if !ok || len(list) == 0 {
			return nil, refused(at, "a list of at least one value is needed here")
		}
		s.Enum = list
	case "required":
		s.Required, err = names(at, v)
	case "properties":
		s.Properties, err = i.properties(at, v, depth)
	case "items":
		s.Items, err = i.node(at, v, depth+1)
	case "anyOf":
		s.AnyOf, err = i.list(at, v, depth)
	case "oneOf":
		s.OneOf, err = i.list(at, v, depth)
	case "allOf":
		return i.list(at, v, depth-1) // they are merged into this schema
	case "$ref":
		p, err := i.reference(at, v, depth)
		return []*jsonschema.Schema{p}, err
	default:
		return nil, refused(at, "the keyword %s is not accepted", shown(key))
	}
	return nil, err
}

// shown quotes a keyword for a message.
func shown(key string) string { return strconv.QuoteToASCII(clip.Text(key, 40)) }

func (i *importer) properties(at place, v any, depth int) (map[string]*jsonschema.Schema, error) {
	fields, ok := v.(map[string]any)
	if !ok {
		return nil, refused(at, "an object is needed here: names and their schemas")
	}
	out := map[string]*jsonschema.Schema{}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		s, err := i.node(at.to(name), fields[name], depth+1)
		if err != nil {
			return nil, err
		}
		out[name] = s
	}
	return out, nil
}

func (i *importer) list(at place, v any, depth int) (out []*jsonschema.Schema, err error) {
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		return nil, refused(at, "a list of at least one schema is needed here")
	}
	for n, one := range list {
		s, err := i.node(at.to(strconv.Itoa(n)), one, depth+1)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// reference expands a local reference.
func (i *importer) reference(at place, v any, depth int) (*jsonschema.Schema, error) {
	text, _ := v.(string)
	pointer, local := strings.CutPrefix(text, "#")
	if !local || pointer != "" && pointer[0] != '/' {
		return nil, refused(at, "a reference within the schema is needed here, such as #/$defs/name")
	}
	target, to := i.doc, place{}
	for n, step := range strings.Split(pointer, "/") {
		if n == 0 {
			continue // before the first slash
		}
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		var ok bool
		if target, ok = within(target, step); !ok {
			return nil, refused(at, "this reference leads nowhere")
		}
		to = append(to, step)
	}
	if i.open[to.pointer()] {
		return nil, refused(at, "the schema contains itself by this reference: recursion is not accepted")
	}
	return i.node(to, target, depth)
}

func within(v any, step string) (any, bool) {
	switch v := v.(type) {
	case map[string]any:
		inner, ok := v[step]
		return inner, ok
	case []any:
		n, err := strconv.Atoi(step)
		if err != nil || n < 0 || n >= len(v) || strconv.Itoa(n) != step {
			return nil, false
		}
		return v[n], true
	}
	return nil, false
}

func readType(s *jsonschema.Schema, at place, v any) error {
	if name, ok := v.(string); ok {
		v = []any{name}
	}
	list, err := names(at, v)
	if err != nil {
		return err
	}
	for _, name := range list {
		if !slices.Contains(types, name) {
			return refused(at, "a type is one of %s", strings.Join(types, ", "))
		}
	}
	if len(list) == 0 {
		return refused(at, "a type is needed here")
	}
	setTypes(s, list)
	return nil
}

// names reads a list of strings, each of which must be there once.
func names(at place, v any) ([]string, error) {
	list, ok := v.([]any)
	if !ok {
		return nil, refused(at, "a list of names is needed here")
	}
	out, seen := make([]string, len(list)), map[string]bool{}
	for i, one := range list {
		name, ok := one.(string)
		if !ok || seen[name] {
			return nil, refused(at, "a list of names is needed here, each of them once")
		}
		out[i], seen[name] = name, true
	}
	return out, nil
}

var (
	numbers = []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
	counts  = []string{"minLength", "maxLength", "minItems", "maxItems"}
)

func number(s *jsonschema.Schema, at place, key string, v any) error {
	n, ok := v.(float64)
	if !ok {
		return refused(at, "a number is needed here")
	}
	switch key {
	case "minimum":
		s.Minimum = &n
	case "maximum":
		s.Maximum = &n
	case "exclusiveMinimum":
		s.ExclusiveMinimum = &n
	case "exclusiveMaximum":
		s.ExclusiveMaximum = &n
	}
	return nil
}

func count(s *jsonschema.Schema, at place, key string, v any) error {
	f, ok := v.(float64)
	n := int(f)
	if !ok || f < 0 || f > 1<<31 || float64(n) != f {
		return refused(at, "a whole number of 0 or more is needed here")
	}
	switch key {
	case "minLength":
		s.MinLength = &n
	case "maxLength":
		s.MaxLength = &n
	case "minItems":
		s.MinItems = &n
	case "maxItems":
		s.MaxItems = &n
	}
	return nil
}

// typesOf returns the types of a schema; none means any.
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

// nullable adds null to the types, as OpenAPI's keyword of that name means.
func nullable(s *jsonschema.Schema) {
	if list := typesOf(s); len(list) > 0 && !slices.Contains(list, "null") {
		setTypes(s, append(slices.Clone(list), "null"))
	}
}
