package action

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/countersign-run/countersign/shared/base/strictyaml"
)

// A Problem is a mistake in a file: its place in the folder of actions, and the expected form.
type Problem = strictyaml.Problem

// document is a YAML file that holds one mapping.
type document struct {
	*strictyaml.Document
	contracts []string // names of the contracts that the file imports
	unused    []string // keys without effect here, each once
}

func parse(file string, data []byte) (*document, error) {
	d, err := strictyaml.Parse(file, data)
	return &document{Document: d}, err
}

// note returns a line that lists the keys of the file that this package ignores, or nothing.
func (d *document) note(file string) []string {
	if len(d.unused) == 0 {
		return nil
	}
	return []string{file + ": these keys have no effect here: " + strings.Join(d.unused, ", ")}
}

// unknown accepts an unknown key as another program's, unless it is almost one of ours.
func (d *document) unknown(key string, ours []string) (misspelt bool) {
	if slices.ContainsFunc(ours, func(our string) bool { return nearly(key, our) }) {
		return true
	}
	if !slices.Contains(d.unused, key) {
		d.unused = append(d.unused, key)
	}
	return false
}

// nearly reports whether a differs from b only in letter case, or in one letter that is missing, wrong or added.
func nearly(a, b string) bool {
	a, b = strings.ToLower(separators.Replace(a)), strings.ToLower(separators.Replace(b))
	if len(a) > len(b) {
		a, b = b, a
	}
	same := 0
	for same < len(a) && a[same] == b[same] {
		same++
	}
	switch {
	case len(b)-len(a) > 1 || len(b) < 4:
		return a == b
	case len(a) == len(b):
		return same == len(a) || a[same+1:] == b[same+1:]
	}
	return a[same:] == b[same+1:]
}

var separators = strings.NewReplacer("_", "", "-", "", "?", "")

// section is a mapping that can contain only known keys.
type section struct {
	*document
	strictyaml.Section
}

func (d *document) section(n *yaml.Node, keys ...string) (section, error) {
	s, err := d.Section(n, keys...)
	return section{d, s}, err
}

// tolerant returns a section in which other programs can have keys of their own. Messages do not list the keys in also.
func (d *document) tolerant(n *yaml.Node, also []string, keys ...string) (section, error) {
	if n.Kind != yaml.MappingNode {
		return d.section(n, keys...)
	}
	all := slices.Concat(keys, also)
	for i := 0; i < len(n.Content); i += 2 {
		if key := n.Content[i].Value; !slices.Contains(all, key) && d.unknown(key, keys) {
			return d.section(&yaml.Node{Kind: yaml.MappingNode, Content: n.Content[i : i+2]}, keys...)
		}
	}
	s, _ := d.Fields(n, all...) // the other keys were checked before
	return section{d, s}, nil
}
