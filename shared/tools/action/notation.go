package action

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/countersign-run/countersign/shared/base/strictyaml"
)

// expanded converts a schema to JSON Schema if the file has it in the notation of jay-stack's later releases. In that
// notation an object is a mapping of its properties ("name?" is an optional one), a list contains the schema of its
// items, and a text is the name of a type. The nodes keep the file's lines.
func (d *document) expanded(n *yaml.Node, input bool) (*yaml.Node, error) {
	switch {
	case n.Kind != yaml.MappingNode && input: // refused later, when it is read as a schema
		return n, nil
	case input && len(n.Content) == 0: // no arguments
		return schemaAt(n, "object"), nil
	case n.Kind == yaml.MappingNode && isSchema(n) && (!input || mayBeObject(n)):
		return n, nil
	}
	return d.expand(n)
}

// mayBeObject reports whether the schema n allows objects. An input is always an object.
func mayBeObject(n *yaml.Node) bool {
	t := valueOf(n, "type")
	return t == nil || t.Kind != yaml.ScalarNode || t.Value == "object"
}

// isSchema reports whether n is a JSON Schema, and not an object in the notation whose properties happen to have the
// names of keywords. As in jay-stack, {type: string, title: string} is an object with two properties.
func isSchema(n *yaml.Node) bool {
	t := valueOf(n, "type")
	switch {
	case t == nil:
		return isUntyped(n)
	case t.Kind == yaml.MappingNode, t.Kind == yaml.ScalarNode && !slices.Contains(types, t.Value):
		return false
	}
	for i := 0; i < len(n.Content); i += 2 {
		key, v := n.Content[i].Value, n.Content[i+1]
		switch {
		case key == "type", key == "format" && v.Value == "date":
		case v.Kind == yaml.ScalarNode && isTypeName(v.Value):
			return false
		case !slices.Contains(keywords, key) && !slices.Contains(checked, key) && !slices.Contains(notes, key) &&
			!strings.HasPrefix(key, "x-") && t.Value != "object" && t.Value != "array":
			return false
		}
	}
	return true
}

// isUntyped reports whether n is a JSON Schema without a type.
func isUntyped(n *yaml.Node) bool {
	for _, key := range []string{"anyOf", "oneOf", "allOf", "enum"} {
		if v := valueOf(n, key); v != nil && v.Kind == yaml.SequenceNode {
			return true
		}
	}
	properties, ref := valueOf(n, "properties"), valueOf(n, "$ref")
	return ref != nil && !isTypeName(ref.Value) || properties != nil && haveTypes(properties)
}

// haveTypes reports whether n is a mapping whose values are all JSON Schemas with a type.
func haveTypes(n *yaml.Node) bool {
	for i := 1; i < len(n.Content); i += 2 {
		if p := n.Content[i]; p.Kind != yaml.MappingNode || !isSchema(p) {
			return false
		}
	}
	return n.Kind == yaml.MappingNode && len(n.Content) > 0
}

// isTypeName reports whether a text names a type in the notation.
func isTypeName(text string) bool {
	name := strings.TrimRight(strings.TrimSpace(text), "[]")
	return named[name] != "" || strings.HasPrefix(name, "enum(") || strings.HasPrefix(name, "record(")
}

// named maps the notation's type names to JSON Schema.
var named = map[string]string{"string": "string", "number": "number", "boolean": "boolean", "integer": "integer",
	"date": "string", "html-string": "string", "file": "string", "object": "object"}

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
		return s, nil // an object with any properties
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

// expandName expands the name of a type: string, number, boolean, date, file, object, any, enum(a | b), record(type), a
// contract that the file imports (an object), and each of these followed by []. A contract can be followed by ?,
// which allows null.
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
	of, isRecord := strings.CutPrefix(inside, "record(")
	contract, orNull := strings.CutSuffix(name, "?")
	switch {
	case slices.Contains(d.contracts, contract):
		return contractAt(n, contract, orNull), nil
	case name == "any", name == "unknown":
		return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Line: n.Line}, nil
	case named[name] != "":
		s := schemaAt(n, named[name])
		if name == "file" {
			put(s, "description", text(n, "A file."))
		}
		return s, nil
	case ok && isRecord:
		values, err := d.expandName(n, strings.TrimSpace(of))
		if err != nil {
			return nil, err
		}
		s := schemaAt(n, "object")
		put(s, "additionalProperties", values)
		return s, nil
	case ok && isEnum && strings.HasPrefix(strings.TrimSpace(values), "("):
		list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Line: n.Line}
		for v := range strings.SplitSeq(strings.TrimPrefix(strings.TrimSpace(values), "("), "|") {
			list.Content = append(list.Content, text(n, strings.TrimSpace(v)))
		}
		s := schemaAt(n, "string")
		put(s, "enum", list)
		return s, nil
	}
	return nil, d.Wrong(n, "%s is no type; a JSON Schema, or one of string, number, boolean, date, file, object, any, "+
		"enum(a | b), record(string), an imported contract, a list or an object was expected", strictyaml.Quoted(name))
}

// contractAt returns the schema of a contract: an object with any properties. The contract's own file is not read.
func contractAt(at *yaml.Node, name string, orNull bool) *yaml.Node {
	s := schemaAt(at, "object")
	put(s, "description", text(at, "Contract: "+name))
	if orNull {
		put(s, "nullable", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!bool", Value: "true", Line: at.Line})
	}
	return s
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
