// Package strictyaml reads files that operators write: YAML of limited size and depth, restricted to the data types of
// JSON. Its errors name the file, the line and the expected content.
package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// MaxFile is the maximum size of a file, in bytes.
const MaxFile = 64 << 10

const maxDepth = 24

// A Problem is an error in a file: its position, and a message.
type Problem struct {
	File string // path within its folder
	Line int    // 0 means the whole file
	Text string
}

// Error returns one line: the position, in the form that editors recognise, and the text.
func (p *Problem) Error() string {
	if p.Line == 0 {
		return p.File + ": " + p.Text
	}
	return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text)
}

// A Document is a YAML file that contains one mapping, its Root.
type Document struct {
	Root *yaml.Node
	file string
}

// Read returns the first MaxFile+1 bytes of a file in the folder. The file must be a regular file.
func Read(root *os.Root, name string) ([]byte, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, &Problem{File: name, Text: "the file cannot be opened; a file within its folder was expected"}
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, &Problem{File: name, Text: "not a regular file"}
	}
	data, err := io.ReadAll(io.LimitReader(f, MaxFile+1))
	if err != nil {
		return nil, &Problem{File: name, Text: "the file cannot be read"}
	}
	return data, nil
}

// Parse decodes a file strictly: one document of limited size and depth, without aliases, custom tags and duplicate
// keys. It returns a [*Problem], like all functions of this package. file is the name in the errors.
func Parse(file string, data []byte) (*Document, error) {
	d := &Document{file: file}
	switch {
	case len(data) > MaxFile:
		return nil, d.Wrong(nil, "the file is larger than %d bytes", MaxFile)
	case !utf8.Valid(data):
		return nil, d.Wrong(nil, "the file is not UTF-8")
	}
	dec := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	err := dec.Decode(&doc)
	if errors.Is(err, io.EOF) {
		return nil, d.Wrong(nil, "the file is empty; a YAML mapping was expected")
	}
	if err != nil {
		return nil, d.syntax(err)
	}
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, d.Wrong(nil, "there is more than one YAML document")
	}
	d.Root = doc.Content[0]
	if err := d.plain(d.Root, 0); err != nil {
		return nil, err
	}
	if d.Root.Kind != yaml.MappingNode {
		return nil, d.Wrong(d.Root, "a YAML mapping was expected")
	}
	return d, nil
}

var syntaxLine = lazyregexp.New(`^yaml: line (\d+): (.*)`)

// syntax converts the library's error to a Problem with its line.
func (d *Document) syntax(err error) error {
	p := &Problem{File: d.file, Text: "this is not YAML: " + strings.TrimPrefix(err.Error(), "yaml: ")}
	if m := syntaxLine.FindStringSubmatch(err.Error()); m != nil {
		p.Line, _ = strconv.Atoi(m[1]) // the pattern matches only digits
		p.Text = "this is not YAML: " + m[2]
	}
	return p
}

// Wrong returns a Problem at the node, or for the whole file if the node is nil.
func (d *Document) Wrong(n *yaml.Node, format string, args ...any) error {
	p := &Problem{File: d.file, Text: fmt.Sprintf(format, args...)}
	if n != nil {
		p.Line = n.Line
	}
	return p
}

// tags lists the YAML types that JSON has too, and timestamps, which are read as texts.
var tags = []string{"!!map", "!!seq", "!!str", "!!int", "!!float", "!!bool", "!!null", "!!timestamp"}

// plain refuses YAML that has no equivalent in JSON: aliases (a short file can expand to a huge one), merge keys, tags
// and duplicate keys.
func (d *Document) plain(n *yaml.Node, depth int) error {
	switch {
	case depth > maxDepth:
		return d.Wrong(n, "this is nested deeper than %d levels", maxDepth)
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		return d.Wrong(n, "anchors and aliases (& and *) are not accepted; write the value out")
	case !slices.Contains(tags, n.ShortTag()):
		return d.Wrong(n, "the tag or merge key %s is not accepted", Quoted(n.ShortTag()))
	}
	seen := map[string]bool{}
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			switch {
			case c.Kind != yaml.ScalarNode:
				return d.Wrong(c, "a key must be a text")
			case seen[c.Value]:
				return d.Wrong(c, "duplicate key %s", Quoted(c.Value))
			}
			seen[c.Value] = true
		}
		if err := d.plain(c, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// Quoted returns the beginning of a text in quotes, on one line.
func Quoted(s string) string { return strconv.Quote(clip.Text(s, 60)) }

// A Section is a mapping with known keys.
type Section struct {
	Node   *yaml.Node
	Values map[string]*yaml.Node

	doc *Document
}

// Section reads a mapping that may contain only these keys. It returns an error for the first unknown key.
func (d *Document) Section(n *yaml.Node, keys ...string) (Section, error) {
	s, wrong := d.Fields(n, keys...)
	if len(wrong) > 0 {
		return s, wrong[0]
	}
	return s, nil
}

// Fields reads a mapping that may contain only these keys. It returns an error for each unknown key.
func (d *Document) Fields(n *yaml.Node, keys ...string) (s Section, wrong []error) {
	s = Section{n, map[string]*yaml.Node{}, d}
	if n.Kind != yaml.MappingNode {
		return s, []error{d.Wrong(n, "a mapping was expected, with keys from: %s", strings.Join(keys, ", "))}
	}
	for i := 0; i < len(n.Content); i += 2 {
		k := n.Content[i]
		if !slices.Contains(keys, k.Value) {
			wrong = append(wrong, d.Wrong(k, "the key %s is not known here; expected: %s", Quoted(k.Value),
				strings.Join(keys, ", ")))
			continue
		}
		s.Values[k.Value] = n.Content[i+1]
	}
	return s, wrong
}

// Required returns the value of the key, or an error if the key is absent.
func (s Section) Required(key string) (*yaml.Node, error) {
	if v := s.Values[key]; v != nil {
		return v, nil
	}
	return nil, s.doc.Wrong(s.Node, "%s is missing", key)
}

// Text returns a text of 1 to most bytes, or "" if the key is absent.
func (s Section) Text(key string, most int) (string, error) {
	n := s.Values[key]
	if n == nil {
		return "", nil
	}
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" || strings.TrimSpace(n.Value) == "" || len(n.Value) > most {
		return "", s.doc.Wrong(n, "%s: a text of 1 to %d bytes was expected", key, most)
	}
	return strings.TrimSpace(n.Value), nil
}

// Flag returns a boolean, or def if the key is absent.
func (s Section) Flag(key string, def bool) (bool, error) {
	n := s.Values[key]
	if n == nil {
		return def, nil
	}
	if n.ShortTag() != "!!bool" {
		return false, s.doc.Wrong(n, "%s: true or false was expected", key)
	}
	return strings.EqualFold(n.Value, "true"), nil
}

// OneOf returns the value, which must be one of the choices, or def if the key is absent.
func (s Section) OneOf(key, def string, choices ...string) (string, error) {
	n := s.Values[key]
	if n == nil {
		return def, nil
	}
	if n.Kind != yaml.ScalarNode || !slices.Contains(choices, n.Value) {
		return "", s.doc.Wrong(n, "%s: one of %s was expected", key, strings.Join(choices, ", "))
	}
	return n.Value, nil
}

// Value converts YAML to the types of JSON: map[string]any, []any, string, float64, int64, bool or nil.
func (d *Document) Value(n *yaml.Node) (any, error) {
	switch n.Kind {
	case yaml.MappingNode:
		m := map[string]any{}
		for i := 0; i < len(n.Content); i += 2 {
			v, err := d.Value(n.Content[i+1])
			if err != nil {
				return nil, err
			}
			m[n.Content[i].Value] = v
		}
		return m, nil
	case yaml.SequenceNode:
		list := []any{}
		for _, c := range n.Content {
			v, err := d.Value(c)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		return list, nil
	}
	return d.scalar(n)
}

func (d *Document) scalar(n *yaml.Node) (any, error) {
	switch n.ShortTag() {
	case "!!null":
		return nil, nil
	case "!!bool":
		return strings.EqualFold(n.Value, "true"), nil
	case "!!int":
		var i int64
		if err := n.Decode(&i); err != nil || !strictjson.Survives(strconv.FormatInt(i, 10)) {
			return nil, d.Wrong(n, "the number %s has more digits than JSON keeps exactly; a text was expected",
				Quoted(n.Value))
		}
		return i, nil
	case "!!float":
		var f float64
		if err := n.Decode(&f); err != nil || math.IsNaN(f) || math.IsInf(f, 0) {
			return nil, d.Wrong(n, "this number does not exist in JSON")
		}
		if !strictjson.Survives(strings.TrimPrefix(strings.ReplaceAll(n.Value, "_", ""), "+")) {
			return nil, d.Wrong(n, "the number %s has more digits than JSON keeps exactly; a text was expected",
				Quoted(n.Value))
		}
		return f, nil
	}
	return n.Value, nil
}
