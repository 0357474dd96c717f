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

var types = []string{"string", "number", "integer", "boolean", "array", "object", "null"}

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
	open      map[string]int    // how often each place is being read right now
	again     int               // how often a place may be read within itself
	recursive bool              // a reference pointed to a place that was being read
	full      bool              // a size limit was reached
	anchors   map[string]string // pointers to the definitions with anchors; nil: not read yet
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
	switch v {
	case true:
		return &jsonschema.Schema{}, nil
	case false:
		return &jsonschema.Schema{Not: &jsonschema.Schema{}}, nil
	}
	fields, ok := v.(map[string]any)
	if !ok {
		return nil, refused(at, "must be a JSON Schema: an object")
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
			return nil, refused(at, "%s", err.Error())
		}
	}
	older(s, fields)
	if fields["nullable"] == true { // next to a reference, nullable applies to the referenced schema
		nullable(s)
	}
	return s, nil
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
	if !ok || len(list) == 0 {
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

// reference expands a local reference.
func (i *importer) reference(at place, v any, depth int) (*jsonschema.Schema, error) {
	text, _ := v.(string)
	if root, ok := i.doc.(map[string]any); ok { // the schema may refer to itself by its own name
		id, _ := root["$id"].(string)
		if base := strings.TrimSuffix(id, "#"); base != "" && strings.HasPrefix(text, base+"#") {
			text = text[len(base):]
		}
	}
	pointer, local := strings.CutPrefix(text, "#")
	if local && pointer != "" && pointer[0] != '/' {
		if to, ok := i.anchored(pointer); ok {
			pointer = to
		}
	}
	if !local || pointer != "" && pointer[0] != '/' {
		return nil, refused(at, "must be a reference within the schema, such as #/$defs/name")
	}
	target, to := i.doc, place{}
	for n, step := range strings.Split(pointer, "/") {
		if n == 0 {
			continue // the empty part before the first slash
		}
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		var ok bool
		if target, ok = within(target, step); !ok {
			return nil, refused(at, "this reference leads nowhere")
		}
		to = append(to, step)
	}
	if n := i.open[to.pointer()]; n > 0 {
		i.recursive = true
		if n > i.again {
			return cut(target), nil
		}
	}
	return i.node(to, target, depth)
}

// anchored returns the pointer to the definition with an anchor. Draft 7 writes an anchor as an $id.
func (i *importer) anchored(anchor string) (pointer string, ok bool) {
	if i.anchors == nil {
		i.anchors = map[string]string{}
		i.noteAnchors(i.doc, nil)
	}
	pointer, ok = i.anchors[anchor]
	return pointer, ok
}

func (i *importer) noteAnchors(v any, at place) {
	fields, ok := v.(map[string]any)
	if !ok || len(at) > 2*MaxDepth { // each schema is at most two names deeper than the schema around it
		return
	}
	if name, ok := fields["$anchor"].(string); ok {
		i.anchors[name] = "/" + at.pointer()
	}
	if id, ok := fields["$id"].(string); ok && strings.HasPrefix(id, "#") {
		i.anchors[id[1:]] = "/" + at.pointer()
	}
	for name, inner := range fields {
		i.noteAnchors(inner, at.to(name))
	}
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
