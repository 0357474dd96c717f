// Package schema imports JSON Schemas from untrusted sources, such as web pages. It checks sizes before it expands
// anything, so that no schema can loop, grow without end or make validation expensive.
package schema

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// Limits of one schema. Depth and nodes are counted after references are expanded.
const (
	MaxBytes = 64 << 10
	MaxDepth = 16 // nesting of schemas
	MaxNodes = 1000
)

// Import parses a JSON Schema, expands its local references and merges allOf. It keeps every keyword that can be
// checked. A schema that contains itself is expanded a few levels deep, and deeper values are not checked. Annotations
// and unknown keywords are ignored, as JSON Schema requires. For a keyword that cannot be checked, Import returns a
// ValidationError whose field is the keyword's JSON pointer without the first slash.
func Import(raw json.RawMessage) (*jsonschema.Schema, error) {
	if len(raw) > MaxBytes {
		return nil, fault.Invalid("", "%d bytes; the limit of a JSON Schema is %d", len(raw), MaxBytes)
	}
	if err := strictjson.Check(raw); err != nil {
		return nil, err
	}
	var doc any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber() // float64 cannot represent every 64-bit bound
	if err := dec.Decode(&doc); err != nil {
		return nil, fault.Invalid("", "invalid JSON").Because(err)
	}
	var i *importer
	for again := maxAgain; ; again-- { // a schema that contains itself in many places may need fewer levels
		i = &importer{doc: doc, open: map[string]int{}, again: again}
		s, err := i.node(place{}, doc, 0)
		if err == nil || again == 0 || !i.recursive || !i.full {
			return s, err
		}
	}
}

// ImportArguments imports the schema of a tool's arguments. Arguments are always an object, so a schema that permits
// objects becomes one that permits nothing else. A default that does not fit its own schema is left out, such as the
// null that some programs write for every optional field.
func ImportArguments(raw json.RawMessage) (*jsonschema.Schema, error) {
	s, err := Import(raw)
	if err != nil {
		return nil, err
	}
	if list := typesOf(s); len(list) == 0 || slices.Contains(list, "object") {
		setTypes(s, []string{"object"})
	}
	fitDefaults(s)
	return s, nil
}

// fitDefaults removes the defaults that do not fit their schemas.
func fitDefaults(s *jsonschema.Schema) {
	if s.Default != nil && !fits(s, s.Default) {
		s.Default = nil
	}
	for inner := range Alternatives(s) {
		fitDefaults(inner)
	}
	for inner := range Inside(s) {
		fitDefaults(inner)
	}
}

func fits(s *jsonschema.Schema, value json.RawMessage) bool {
	var v any
	r, err := s.CloneSchemas().Resolve(nil)
	return err == nil && json.Unmarshal(value, &v) == nil && r.Validate(v) == nil
}

// maxAgain is the number of times that a schema is expanded within itself.
const maxAgain = 2

// place is a position in the schema: the reference tokens of a JSON pointer.
type place []string

func (p place) to(names ...string) place { return append(slices.Clip(p), names...) }

var escaper = strings.NewReplacer("~", "~0", "/", "~1")

// pointer returns the place as a JSON pointer (RFC 6901) without the first slash.
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
	doc       any
	open      map[string]int // how often each place is being read right now
	again     int            // how often a place may be read within itself
	recursive bool           // a reference pointed to a place that was being read
	full      bool           // a size limit was reached
	names     *names         // nil: not read yet
	nodes     int
	patterns  int // total size of the patterns
}

// node imports the schema v at the given place.
func (i *importer) node(at place, v any, depth int) (*jsonschema.Schema, error) {
	if i.nodes++; i.nodes > MaxNodes {
		i.full = true
		return nil, refused(at, "the schema has more than %d parts once its references are written out", MaxNodes)
	}
	if depth > MaxDepth {
		i.full = true
		return nil, refused(at, "the schema is nested deeper than %d levels", MaxDepth)
	}
	fields, ok := v.(map[string]any)
	if !ok {
		return short(at, v)
	}
	i.open[at.pointer()]++
	defer func() { i.open[at.pointer()]-- }()
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
			return contradictory(at, fields, p, err)
		}
	}
	older(s, fields)
	if fields["nullable"] == true { // next to a reference, nullable applies to the referenced schema
		nullable(s)
	}
	return s, nil
}

// short returns the schema for a value that is not an object: true, false, or a bare type.
func short(at place, v any) (*jsonschema.Schema, error) {
	s := &jsonschema.Schema{}
	switch text, _ := v.(string); {
	case v == true || text == "true":
		return s, nil
	case v == false || text == "false":
		return &jsonschema.Schema{Not: s}, nil
	case text != "" && readType(s, at, v) == nil:
		return s, nil
	}
	return nil, refused(at, "must be a JSON Schema: an object")
}

// contradictory returns the schema for a place where two parts exclude each other. Next to a reference, other keywords
// meant nothing before draft 2019-09, so the referenced schema p holds alone. Otherwise, no value is allowed there.
func contradictory(at place, fields map[string]any, p *jsonschema.Schema, why error) (*jsonschema.Schema, error) {
	switch {
	case fields["$ref"] != nil && fields["allOf"] == nil:
		return p, nil
	case len(at) > 0:
		return &jsonschema.Schema{Not: &jsonschema.Schema{}}, nil
	}
	return nil, refused(at, "%s", why)
}

func (i *importer) properties(at place, v any, depth int) (map[string]*jsonschema.Schema, error) {
	fields, ok := v.(map[string]any)
	if list, empty := v.([]any); empty && len(list) == 0 { // PHP writes an empty object as an empty list
		return nil, nil
	}
	if !ok {
		return nil, refused(at, "must be an object: names and their schemas")
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
	if !ok {
		return nil, refused(at, "must be a list of at least one schema")
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

// cut returns a schema with only the type of target. It is used where the expansion of a recursive schema ends.
func cut(target any) *jsonschema.Schema {
	s := &jsonschema.Schema{}
	if fields, ok := target.(map[string]any); ok && fields["type"] != nil {
		_ = readType(s, nil, fields["type"]) // an invalid type is reported at its own place
	}
	return s
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
