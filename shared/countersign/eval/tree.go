package eval

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"go.yaml.in/yaml/v3"

	"github.com/countersign-run/countersign/shared/base/strictyaml"
)

// A node is a value in a file of cases, with its place. The methods of a missing node return zero values.
type node struct {
	at     string // path within the file, such as cases[0].turns[1].prompt
	line   int
	value  json.RawMessage  // the value as JSON
	fields map[string]*node // of an object
	items  []*node          // of a list, not nil
	file   *file
}

// file is a file that is being read. Its problems are collected.
type file struct {
	name  string
	wrong []error
}

// fail records a problem at the node.
func (n *node) fail(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if n.at != "" {
		text = n.at + ": " + text
	}
	n.file.wrong = append(n.file.wrong, &strictyaml.Problem{File: n.file.name, Line: n.line, Text: text})
}

// null reports whether the value is missing or null.
func (n *node) null() bool { return n == nil || string(n.value) == "null" }

// get returns the field with the first of the names that the object has, or nil.
func (n *node) get(names ...string) *node {
	if n == nil {
		return nil
	}
	for _, name := range names {
		if v := n.fields[name]; !v.null() {
			return v
		}
	}
	return nil
}

// object reports whether the value is an object, and records a problem if it is something else. A missing node is no
// object.
func (n *node) object() bool {
	if n == nil {
		return false
	}
	if n.fields == nil {
		n.fail("an object was expected")
	}
	return n.fields != nil
}

// list returns the items of a list of at most a number of items.
func (n *node) list(most int) []*node {
	switch {
	case n.null():
		return nil
	case n.items == nil:
		n.fail("a list was expected")
	case len(n.items) > most:
		n.fail("%d entries; the limit is %d", len(n.items), most)
	default:
		return n.items
	}
	return nil
}

// text returns a text of at most a number of bytes.
func (n *node) text(most int) (s string) {
	if n.null() {
		return ""
	}
	if json.Unmarshal(n.value, &s) != nil {
		n.fail("a text was expected")
	}
	if len(s) > most {
		n.fail("%d bytes; the limit is %d", len(s), most)
		return ""
	}
	return s
}

// texts returns a text, or a list of texts.
func (n *node) texts(most int) (all []string) {
	switch {
	case n.null():
		return nil
	case n.items == nil && len(n.value) > 0 && n.value[0] == '"':
		return []string{n.text(most)}
	}
	for _, item := range n.list(maxEntries) {
		all = append(all, item.text(most))
	}
	return all
}

// number returns a number from least to most, or def if there is none.
func (n *node) number(def, least, most float64) (v float64) {
	if n.null() {
		return def
	}
	if json.Unmarshal(n.value, &v) != nil || v < least || v > most {
		n.fail("a number from %g to %g was expected", least, most)
		return def
	}
	return v
}

// whole returns a whole number from least to most, or def if there is none.
func (n *node) whole(def, least, most int) int {
	v := n.number(float64(def), float64(least), float64(most))
	if v != float64(int(v)) {
		n.fail("a whole number was expected")
		return def
	}
	return int(v)
}

// flag returns a boolean, or def if there is none.
func (n *node) flag(def bool) (v bool) {
	if n.null() {
		return def
	}
	if json.Unmarshal(n.value, &v) != nil {
		n.fail("true or false was expected")
	}
	return v
}

// oneOf returns one of the choices. The default is the first one.
func (n *node) oneOf(choices ...string) string {
	if n.null() {
		return choices[0]
	}
	s := n.text(100)
	for _, c := range choices {
		if s == c {
			return c
		}
	}
	n.fail("one of %s was expected", strings.Join(choices, ", "))
	return choices[0]
}

// only records a problem for each field of the object that is not among the names.
func (n *node) only(names ...string) {
	if n == nil {
		return
	}
	for name, v := range n.fields {
		known := false
		for _, k := range names {
			known = known || k == name
		}
		if !known {
			v.fail("this key is not known here; expected: %s", strings.Join(names, ", "))
		}
	}
}

// parseJSON reads a JSON file.
func parseJSON(name string, data []byte) (*node, error) {
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // some editors begin a file with it
	r := &jsonReader{Decoder: jsontext.NewDecoder(bytes.NewReader(data)), data: data, file: &file{name: name}}
	n, err := r.node("", 0)
	if err == nil {
		if _, err = r.ReadToken(); errors.Is(err, io.EOF) {
			return n, nil
		}
		err = errors.New("unexpected data after the JSON value")
	}
	return nil, &strictyaml.Problem{File: name, Line: r.line(), Text: "this is not JSON: " + reason(err)}
}

// jsonReader reads nodes from JSON, and counts the lines until the last token.
type jsonReader struct {
	*jsontext.Decoder
	data    []byte
	file    *file
	counted int64 // bytes in which the lines are counted
	lines   int
}

// line returns the line of the last token.
func (r *jsonReader) line() int {
	r.lines += bytes.Count(r.data[r.counted:r.InputOffset()], []byte("\n"))
	r.counted = r.InputOffset()
	return 1 + r.lines
}

// reason returns the error without the name of the decoding library.
func reason(err error) string { return strings.TrimPrefix(err.Error(), "jsontext: ") }

// maxDepth limits how deep a file is nested.
const maxDepth = 64

func (r *jsonReader) node(at string, depth int) (*node, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d levels", maxDepth)
	}
	n := &node{at: at, file: r.file}
	kind := r.PeekKind()
	if kind != '{' && kind != '[' {
		v, err := r.ReadValue()
		n.value, n.line = bytes.Clone(v), r.line()
		return n, err
	}
	if _, err := r.ReadToken(); err != nil {
		return nil, err
	}
	n.line = r.line()
	begin := r.InputOffset() - 1
	if err := r.inside(n, kind, depth); err != nil {
		return nil, err
	}
	_, err := r.ReadToken()
	n.value = r.data[begin:r.InputOffset()]
	return n, err
}

// inside reads the fields or the items of a node.
func (r *jsonReader) inside(n *node, kind jsontext.Kind, depth int) error {
	if n.items = []*node{}; kind == '{' {
		n.fields, n.items = map[string]*node{}, nil
	}
	for k := r.PeekKind(); k != '}' && k != ']'; k = r.PeekKind() {
		path, key := fmt.Sprintf("%s[%d]", n.at, len(n.items)), ""
		if kind == '{' {
			token, err := r.ReadToken()
			if err != nil {
				return err
			}
			key = token.String()
			path = strings.TrimPrefix(n.at+"."+key, ".")
		}
		v, err := r.node(path, depth+1)
		if err != nil {
			return err
		}
		if kind == '{' {
			n.fields[key] = v
		} else {
			n.items = append(n.items, v)
		}
	}
	return nil
}

// parseYAML reads a YAML file with strictyaml's limits.
func parseYAML(name string, data []byte) (*node, error) {
	d, err := strictyaml.Parse(name, data)
	if err != nil {
		return nil, err
	}
	f := &file{name: name}
	return f.yaml(d, d.Root, "")
}

func (f *file) yaml(d *strictyaml.Document, from *yaml.Node, at string) (*node, error) {
	v, err := d.Value(from)
	if err != nil {
		return nil, err
	}
	n := &node{at: at, line: from.Line, file: f}
	if n.value, err = json.Marshal(v); err != nil {
		return nil, d.Wrong(from, "this cannot be written as JSON")
	}
	switch from.Kind {
	case yaml.MappingNode:
		n.fields = map[string]*node{}
		for i := 0; i < len(from.Content); i += 2 {
			key := from.Content[i].Value
			if n.fields[key], err = f.yaml(d, from.Content[i+1], strings.TrimPrefix(at+"."+key, ".")); err != nil {
				return nil, err
			}
		}
	case yaml.SequenceNode:
		n.items = []*node{}
		for i, c := range from.Content {
			item, err := f.yaml(d, c, fmt.Sprintf("%s[%d]", at, i))
			if err != nil {
				return nil, err
			}
			n.items = append(n.items, item)
		}
	}
	return n, nil
}
