package action

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/countersign-run/countersign/shared/clip"
	"github.com/countersign-run/countersign/shared/strictjson"
)

// The bounds of one file.
const (
	maxFile  = 64 << 10
	maxDepth = 24
)

// A Problem is a mistake in a file: where it is, and what was expected.
type Problem struct {
	File string // within the folder of actions
	Line int    // 0: the file as a whole
	Text string
}

// Error returns one line: the place, as editors understand it, and the sentence.
func (p *Problem) Error() string {
	if p.Line == 0 {
		return p.File + ": " + p.Text
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text)
}

// document is a YAML file that holds one mapping.
type document struct {
	file string
	root *yaml.Node
}

// parse decodes a file strictly: one document of bounded size and depth, without aliases, custom tags and repeated
// keys.
func parse(file string, data []byte) (*document, error) {
	d := &document{file: file}
	switch {
	case len(data) > maxFile:
		return nil, d.wrong(nil, "the file is larger than %d bytes", maxFile)
	case !utf8.Valid(data):
		return nil, d.wrong(nil, "the file is not UTF-8")
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return nil, d.wrong(nil, "the file is empty; a YAML mapping was expected")
	}
	if err != nil {
		return nil, d.syntax(err)
	}
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, d.wrong(nil, "there is more than one YAML document")
	}
	d.root = doc.Content[0]
	if err := d.plain(d.root, 0); err != nil {
		return nil, err
	}
	if d.root.Kind != yaml.MappingNode {
		return nil, d.wrong(d.root, "a YAML mapping was expected")
	}
	return d, nil
}

var syntaxLine = regexp.MustCompile(`^yaml: line (\d+): (.*)`)

// syntax converts the library's error to a Problem with its line.
func (d *document) syntax(err error) error {
	p := &Problem{File: d.file, Text: "this is not YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}
	if m := syntaxLine.FindStringSubmatch(err.Error()); m != nil {
		p.Line, _ = strconv.Atoi(m[1]) // digits, by the pattern
		p.Text = "this is not YAML: " + m[2]
	}
	return p
}

func (d *document) wrong(n *yaml.Node, format string, args ...any) error {
	p := &Problem{File: d.file, Text: fmt.Sprintf(format, args...)}
	if n != nil {
		p.Line = n.Line
	}
	return p
}

// tags holds the kinds of values that JSON has too. Dates stay texts.
var tags = []string{"!!map", "!!seq", "!!str", "!!int", "!!float", "!!bool", "!!null", "!!timestamp"}

// plain refuses what JSON does not have: aliases (a short file may expand to a huge one), merges, tags and repeated
// keys.
func (d *document) plain(n *yaml.Node, depth int) error {
	switch {
	case depth > maxDepth:
		return d.wrong(n, "this is nested deeper than %d levels", maxDepth)
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return d.wrong(n, "anchors and aliases (& and *) are not accepted; write the value out")
	case !slices.Contains(tags, n.ShortTag()):
		return d.wrong(n, "the tag or merge key %s is not accepted", quoted(n.ShortTag()))
	}
	seen := map[string]bool{}
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			switch {
			case c.Kind != yaml.ScalarNode:
				return d.wrong(c, "a key must be a text")
			case seen[c.Value]:
				return d.wrong(c, "the key %s stands twice", quoted(c.Value))
			}
			seen[c.Value] = true
		}
		if err := d.plain(c, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// quoted returns the start of a text in quotes, on one line.
func quoted(s string) string { return strconv.Quote(clip.Text(s, 60)) }

// section is a mapping whose keys are known.
type section struct {
	*document
	node   *yaml.Node
	values map[string]*yaml.Node
}

// section reads a mapping with these keys and no others.
func (d *document) section(n *yaml.Node, keys ...string) (section, error) {
	s := section{d, n, map[string]*yaml.Node{}}
	if n.Kind != yaml.MappingNode {
		return s, d.wrong(n, "a mapping was expected, with keys from: %s", strings.Join(keys, ", "))
	}
	for i := 0; i < len(n.Content); i += 2 {
		k := n.Content[i]
		if !slices.Contains(keys, k.Value) {
			return s, d.wrong(k, "the key %s is not known here; expected: %s", quoted(k.Value),
				strings.Join(keys, ", "))
		}
		s.values[k.Value] = n.Content[i+1]
	}
	return s, nil
}

// required returns the value of a key that must be present.
func (s section) required(key string) (*yaml.Node, error) {
	if v := s.values[key]; v != nil {
		return v, nil
	}
	return nil, s.wrong(s.node, "%s is missing", key)
}

// text returns a text of 1 to most bytes, or "" if the key is absent.
func (s section) text(key string, most int) (string, error) {
	n := s.values[key]
	if n == nil {
		return "", nil
	}
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" || strings.TrimSpace(n.Value) == "" || len(n.Value) > most {
		return "", s.wrong(n, "%s: a text of 1 to %d bytes was expected", key, most)
	}
	return strings.TrimSpace(n.Value), nil
}

// flag returns a boolean, or def if the key is absent.
func (s section) flag(key string, def bool) (bool, error) {
	n := s.values[key]
	if n == nil {
		return def, nil
	}
	if n.ShortTag() != "!!bool" {
		return false, s.wrong(n, "%s: true or false was expected", key)
	}
	return strings.EqualFold(n.Value, "true"), nil
}

// oneOf returns one of the choices, or def if the key is absent.
func (s section) oneOf(key, def string, choices ...string) (string, error) {
	n := s.values[key]
	if n == nil {
		return def, nil
	}
	if n.Kind != yaml.ScalarNode || !slices.Contains(choices, n.Value) {
		return "", s.wrong(n, "%s: one of %s was expected", key, strings.Join(choices, ", "))
	}
	return n.Value, nil
}

// value converts YAML to the types of JSON: map[string]any, []any, string, float64, int64, bool or nil.
func (d *document) value(n *yaml.Node) (any, error) {
	switch n.Kind {
	case yaml.MappingNode:
		m := map[string]any{}
		for i := 0; i < len(n.Content); i += 2 {
			v, err := d.value(n.Content[i+1])
			if err != nil {
				return nil, err
			}
			m[n.Content[i].Value] = v
		}
		return m, nil
	case yaml.SequenceNode:
		list := []any{}
		for _, c := range n.Content {
			v, err := d.value(c)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	}
	return d.scalar(n)
}

func (d *document) scalar(n *yaml.Node) (any, error) {
	switch n.ShortTag() {
	case "!!null":
		return nil, nil
	case "!!bool":
		return strings.EqualFold(n.Value, "true"), nil
	case "!!int":
		var i int64
		if err := n.Decode(&i); err != nil || !strictjson.Survives(strconv.FormatInt(i, 10)) {
			return nil, d.wrong(n, "the number %s has more digits than JSON keeps exactly; a text was expected",
				quoted(n.Value))
		}
		return i, nil
	case "!!float":
		var f float64
		if err := n.Decode(&f); err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, d.wrong(n, "this number does not exist in JSON")
		}
		if !strictjson.Survives(strings.TrimPrefix(strings.ReplaceAll(n.Value, "_", ""), "+")) {
			return nil, d.wrong(n, "the number %s has more digits than JSON keeps exactly; a text was expected",
				quoted(n.Value))
		}
		return f, nil
	}
	return n.Value, nil
}
