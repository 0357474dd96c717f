package action

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"

	"github.com/countersign-run/countersign/shared/strictyaml"
)

// The bounds of one schema.
const (
	maxProperties = 100
	maxEnum       = 500
)

// keywords holds those of JSON Schema that Gemini, the validation and the generated types all support.
var keywords = []string{"type", "title", "description", "properties", "required", "additionalProperties", "items",
	"enum", "default", "format", "pattern",
	"minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "minimum", "maximum", "exclusiveMinimum",
	"exclusiveMaximum", "multipleOf"}

var types = []string{"string", "number", "integer", "boolean", "array", "object"}

// schema decodes a JSON Schema; root is the type that it must have, or empty.
func (d *document) schema(n *yaml.Node, root string) (*jsonschema.Schema, error) {
	if err := d.schemaNode(n, root); err != nil {
		return nil, err
	}
	v, err := d.Value(n)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, d.Wrong(n, "this cannot be written as JSON")
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(raw, &s); err != nil {
		return nil, d.Wrong(n, "this is no JSON Schema: %s", strictyaml.Quoted(err.Error()))
	}
	return &s, d.usable(n, &s)
}

// usable returns an error for a schema that nothing can be checked against.
func (d *document) usable(n *yaml.Node, s *jsonschema.Schema) error {
	if _, err := s.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true}); err != nil {
		return d.Wrong(n, "this is no JSON Schema that can be used: a pattern of RE2 and a default that fits "+
			"its schema were expected")
	}
	return nil
}

// schemaNode checks what the library does not: unknown keywords, and required names that are not properties.
func (d *document) schemaNode(n *yaml.Node, root string) error {
	s, err := d.section(n, keywords...)
	if err != nil {
		return err
	}
	kind, err := s.Required("type")
	if err != nil {
		return err
	}
	switch {
	case root != "" && kind.Value != root:
		return d.Wrong(kind, "type: %s was expected here", root)
	case kind.Kind != yaml.ScalarNode || !slices.Contains(types, kind.Value):
		return d.Wrong(kind, "type: one of %s was expected", strings.Join(types, ", "))
	}
	if _, err := s.Text("description", 4096); err != nil {
		return err
	}
	if e := s.Values["enum"]; e != nil &&
		(e.Kind != yaml.SequenceNode || len(e.Content) == 0 || len(e.Content) > maxEnum) {
		return d.Wrong(e, "enum: a list of 1 to %d values was expected", maxEnum)
	}
	if a := s.Values["additionalProperties"]; a != nil && a.ShortTag() != "!!bool" {
		return d.Wrong(a, "additionalProperties: true or false was expected")
	}
	for _, only := range [][2]string{{"properties", "object"}, {"required", "object"},
		{"additionalProperties", "object"}, {"items", "array"}} {
		if v := s.Values[only[0]]; v != nil && kind.Value != only[1] {
			return d.Wrong(v, "%s: only a schema of type %s has it", only[0], only[1])
		}
	}
	if items := s.Values["items"]; items != nil {
		return d.schemaNode(items, "")
	}
	return d.properties(s)
}

func (d *document) properties(s section) error {
	names := []string{}
	if p := s.Values["properties"]; p != nil {
		if p.Kind != yaml.MappingNode || len(p.Content) > 2*maxProperties {
			return d.Wrong(p, "properties: a mapping of at most %d names to schemas was expected", maxProperties)
		}
		for i := 0; i < len(p.Content); i += 2 {
			name := p.Content[i]
			if !validField.MatchString(name.Value) {
				return d.Wrong(name, "the property %s: up to 64 letters, digits, _ and $ that begin with no digit "+
					"were expected", strictyaml.Quoted(name.Value))
			}
			if err := d.schemaNode(p.Content[i+1], ""); err != nil {
				return err
			}
			names = append(names, name.Value)
		}
	}
	r := s.Values["required"]
	if r == nil {
		return nil
	}
	if r.Kind != yaml.SequenceNode {
		return d.Wrong(r, "required: a list of names was expected")
	}
	for _, n := range r.Content {
		if !slices.Contains(names, n.Value) {
			return d.Wrong(n, "required: %s is none of the properties", strictyaml.Quoted(n.Value))
		}
	}
	return nil
}

// finish keeps the file's order of properties.
func finish(s *jsonschema.Schema, n *yaml.Node) {
	for i := 0; i < len(n.Content); i += 2 {
		value := n.Content[i+1]
		switch n.Content[i].Value {
		case "items":
			finish(s.Items, value)
		case "properties":
			for j := 0; j < len(value.Content); j += 2 {
				name := value.Content[j].Value
				s.PropertyOrder = append(s.PropertyOrder, name)
				finish(s.Properties[name], value.Content[j+1])
			}
		}
	}
}

// closeObjects makes the objects of an input allow only the properties that they name, unless they say otherwise: the
// server does not accept, show or send what a file does not declare. A nested object that names none allows any.
// Outputs stay open: an endpoint may return more than the file declares.
func closeObjects(s *jsonschema.Schema, root bool) {
	if s.Items != nil {
		closeObjects(s.Items, false)
	}
	for _, p := range s.Properties {
		closeObjects(p, false)
	}
	if s.Type == "object" && s.AdditionalProperties == nil && (root || s.Properties != nil) {
		s.AdditionalProperties = &jsonschema.Schema{Not: &jsonschema.Schema{}}
	}
}
