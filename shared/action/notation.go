package action

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/countersign-run/countersign/shared/strictyaml"
)

// expanded returns a schema as JSON Schema if the file has it in the notation of jay-stack's later releases: an object
// is its properties ("name?" is one that may be left out), a list holds what its items are, and a text names a type.
// The nodes keep the file's lines.
func (d *document) expanded(n *yaml.Node, input bool) (*yaml.Node, error) {
	// the latter is refused as a schema
	if n.Kind == yaml.MappingNode && isSchema(n) || n.Kind != yaml.MappingNode && input {
		return n, nil
	}
	return d.expand(n)
}

// isSchema reports whether n is a JSON Schema and not an object of the notation, which may have a property called type.
func isSchema(n *yaml.Node) bool {
	t := valueOf(n, "type")
	switch {
	case t == nil:
		return len(n.Content) == 0
	case t.Kind != yaml.ScalarNode || !slices.Contains(types, t.Value):
		return false
	case t.Value == "object" || t.Value == "array" || t.Value == "integer": // not types of the notation
		return true
	}
	for i := 0; i < len(n.Content); i += 2 {
		if !slices.Contains(keywords, n.Content[i].Value) {
			return false
		}
	}
	return true
}

func valueOf(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}

func (d *document) expand(n *yaml.Node) (*yaml.Node, error) {
	switch n.Kind {
	case yaml.SequenceNode:
		return d.expandList(n)
	case yaml.MappingNode:
		return d.expandObject(n)
	}
	return d.expandName(n, strings.TrimSpace(n.Value))
}

func (d *document) expandList(n *yaml.Node) (*yaml.Node, error) {
	if len(n.Content) > 1 {
		return nil, d.Wrong(n.Content[1], "a list has one entry here: what its items are")
	}
	s := schemaAt(n, "array")
	if len(n.Content) == 1 {
		items, err := d.expand(n.Content[0])
		if err != nil {
			return nil, err
		}
		put(s, "items", items)
	}
	return s, nil
}

func (d *document) expandObject(n *yaml.Node) (*yaml.Node, error) {
	s := schemaAt(n, "object")
	if len(n.Content) == 0 {
		return s, nil // of any properties
	}
	properties, required := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: n.Line},
		&yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Line: n.Line}
	for i := 0; i < len(n.Content); i += 2 {
		name, optional := strings.CutSuffix(n.Content[i].Value, "?")
		p, err := d.expand(n.Content[i+1])
		if err != nil {
			return nil, err
		}
		put(properties, name, p)
		properties.Content[len(properties.Content)-2].Line = n.Content[i].Line
		if !optional {
			required.Content = append(required.Content, text(n.Content[i], name))
		}
	}
	put(s, "properties", properties)
	put(s, "required", required)
	return s, nil
}

// expandName expands the name of a type: string, number, boolean, date, enum(a | b), record(type), and each of these
// followed by [].
func (d *document) expandName(n *yaml.Node, name string) (*yaml.Node, error) {
	if item, ok := strings.CutSuffix(name, "[]"); ok {
		items, err := d.expandName(n, item)
		if err != nil {
			return nil, err
		}
		s := schemaAt(n, "array")
		put(s, "items", items)
		return s, nil
	}
	inside, ok := strings.CutSuffix(name, ")")
	values, isEnum := strings.CutPrefix(inside, "enum")
	_, isRecord := strings.CutPrefix(inside, "record(")
	switch {
	case slices.Contains([]string{"string", "number", "boolean"}, name):
		return schemaAt(n, name), nil
	case name == "date", name == "html-string":
		return schemaAt(n, "string"), nil
	case ok && isRecord:
		return schemaAt(n, "object"), nil
	case ok && isEnum && strings.HasPrefix(strings.TrimSpace(values), "("):
		list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Line: n.Line}
		for v := range strings.SplitSeq(strings.TrimPrefix(strings.TrimSpace(values), "("), "|") {
			list.Content = append(list.Content, text(n, strings.TrimSpace(v)))
		}
		s := schemaAt(n, "string")
		put(s, "enum", list)
		return s, nil
	}
	return nil, d.Wrong(n, "%s is no type; a JSON Schema, or one of string, number, boolean, date, enum(a | b), "+
		"record(string), a list or an object was expected", strictyaml.Quoted(name))
}

func schemaAt(at *yaml.Node, kind string) *yaml.Node {
	s := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: at.Line}
	put(s, "type", text(at, kind))
	return s
}

func put(m *yaml.Node, key string, value *yaml.Node) {
	m.Content = append(m.Content, text(value, key), value)
}

func text(at *yaml.Node, s string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s, Line: at.Line}
}
