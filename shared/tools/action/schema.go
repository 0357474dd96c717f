package action

import (
	"encoding/json"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/schema"
	"github.com/countersign-run/countersign/shared/base/strictyaml"
)

// The limits of one schema.
const (
	maxProperties = 100
	maxField      = 64 // characters of a property's name
	maxEnum       = 500
)

// keywords lists the keywords of JSON Schema that Gemini, the validation and the generated types all support.
var keywords = []string{"type", "title", "description", "properties", "required", "additionalProperties", "items",
	"enum", "default", "format", "pattern",
	"minLength", "maxLength", "minItems", "maxItems", "uniqueItems", "minimum", "maximum", "exclusiveMinimum",
	"exclusiveMaximum", "multipleOf"}

var types = []string{"string", "number", "integer", "boolean", "array", "object"}

// checked lists the other keywords that this program can check. The description repeats those that Gemini does not
// support.
var checked = []string{"anyOf", "oneOf", "allOf", "not", "const", "nullable", "$ref", "$defs", "definitions", "if",
	"then", "else", "patternProperties", "propertyNames", "minProperties", "maxProperties", "prefixItems", "contains",
	"minContains", "maxContains", "dependentRequired", "dependentSchemas", "dependencies"}

// notes lists keywords that do not restrict a value.
var notes = []string{"$schema", "$id", "$comment", "example", "examples", "deprecated", "readOnly", "writeOnly"}

// schema decodes a JSON Schema. root is the required type, or empty.
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
	s, err := schema.Import(raw)
	if err != nil {
		f := fault.As(err)
		return nil, d.Wrong(nodeAt(n, f.Field), "this is no JSON Schema that can be used: %s", f.Message)
	}
	if root != "" {
		s.Type, s.Types = root, nil
	}
	finish(s, n)
	return s, d.usable(n, s)
}

// nodeAt returns the node at a JSON pointer without its first slash, or the last existing node on the way to it.
func nodeAt(n *yaml.Node, pointer string) *yaml.Node {
	for step := range strings.SplitSeq(pointer, "/") {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		next := (*yaml.Node)(nil)
		if n.Kind == yaml.MappingNode {
			next = valueOf(n, step)
		} else if i, err := strconv.Atoi(step); err == nil && i < len(n.Content) {
			next = n.Content[i]
		}
		if next == nil {
			return n
		}
		n = next
	}
	return n
}

// usable returns an error for a schema that cannot be used to check values.
func (d *document) usable(n *yaml.Node, s *jsonschema.Schema) error {
	if _, err := s.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true}); err != nil {
		return d.Wrong(n, "this is no JSON Schema that can be used: a pattern of RE2 and a default that fits "+
			"its schema were expected")
	}
	return nil
}

// schemaNode does the checks that Import does not do: it refuses misspelt keywords, and required names that are not
// properties.
func (d *document) schemaNode(n *yaml.Node, root string) error {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!bool" {
		return nil // true or false: any value, or none
	}
	s, err := d.tolerant(n, slices.Concat(checked, notes), keywords...)
	if err != nil {
		return err
	}
	if err := s.checkType(root); err != nil {
		return err
	}
	if _, err := s.Text("description", 4096); err != nil {
		return err
	}
	if e := s.Values["enum"]; e != nil &&
		(e.Kind != yaml.SequenceNode || len(e.Content) == 0 || len(e.Content) > maxEnum) {
		return d.Wrong(e, "enum: a list of 1 to %d values was expected", maxEnum)
	}
	if p := s.Values["pattern"]; p != nil {
		if _, err := syntax.Parse(p.Value, syntax.Perl); err != nil {
			return d.Wrong(p, "pattern: a pattern of RE2 was expected")
		}
	}
	for _, key := range []string{"items", "additionalProperties", "not"} {
		if v := s.Values[key]; v != nil {
			if err := d.schemaNode(v, ""); err != nil {
				return err
			}
		}
	}
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		if list := s.Values[key]; list != nil {
			for _, one := range list.Content {
				if err := d.schemaNode(one, ""); err != nil {
					return err
				}
			}
		}
	}
	return d.properties(s)
}

// checkType checks the type, and refuses keywords that apply only to other types.
func (s section) checkType(root string) error {
	kind := s.Values["type"]
	if kind == nil {
		return nil // of any type; the root has the type of a root
	}
	list := []*yaml.Node{kind}
	if kind.Kind == yaml.SequenceNode {
		list = kind.Content
	}
	has := []string{}
	for _, n := range list {
		if n.Kind != yaml.ScalarNode || !slices.Contains(types, n.Value) && n.Value != "null" {
			return s.Wrong(kind, "type: one of %s was expected", strings.Join(types, ", "))
		}
		has = append(has, n.Value)
	}
	if root != "" && !slices.Contains(has, root) {
		return s.Wrong(kind, "type: %s was expected here", root)
	}
	for _, only := range [][2]string{{"properties", "object"}, {"required", "object"},
		{"additionalProperties", "object"}, {"items", "array"}} {
		if v := s.Values[only[0]]; v != nil && !slices.Contains(has, only[1]) {
			return s.Wrong(v, "%s: only a schema of type %s has it", only[0], only[1])
		}
	}
	return nil
}

func (d *document) properties(s section) error {
	names := []string{}
	if p := s.Values["properties"]; p != nil {
		if p.Kind != yaml.MappingNode || len(p.Content) > 2*maxProperties {
			return d.Wrong(p, "properties: a mapping of at most %d names to schemas was expected", maxProperties)
		}
		for i := 0; i < len(p.Content); i += 2 {
			name := p.Content[i]
			if utf8.RuneCountInString(name.Value) > maxField || !validField.MatchString(name.Value) {
				return d.Wrong(name, "the property %s: up to %d letters, digits, _, $, . and - that begin with "+
					"a letter, _ or $ were expected", strictyaml.Quoted(name.Value), maxField)
			}
			if err := d.schemaNode(p.Content[i+1], ""); err != nil {
				return err
			}
			names = append(names, name.Value)
		}
	}
	r := s.Values["required"]
	if r == nil || len(names) == 0 && s.Values["type"] == nil { // for a part of another schema
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

// finish adds the titles and the order of properties from the file.
func finish(s *jsonschema.Schema, n *yaml.Node) {
	if s == nil {
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		value := n.Content[i+1]
		switch n.Content[i].Value {
		case "title":
			s.Title = value.Value
		case "items":
			finish(s.Items, value)
		case "additionalProperties":
			finish(s.AdditionalProperties, value)
		case "properties":
			for j := 0; j < len(value.Content); j += 2 {
				name := value.Content[j].Value
				s.PropertyOrder = append(s.PropertyOrder, name)
				finish(s.Properties[name], value.Content[j+1])
			}
		}
	}
}

// closeObjects makes the objects of an input allow only the properties that they name, unless the file says otherwise:
// the server does not accept, show or send undeclared values. A nested object that names no properties allows any, and
// so does one whose alternatives may name some. Outputs stay open, because an endpoint may return more than the file
// declares.
func closeObjects(s *jsonschema.Schema, root bool) {
	if s.Items != nil {
		closeObjects(s.Items, false)
	}
	if s.AdditionalProperties != nil {
		closeObjects(s.AdditionalProperties, false)
	}
	for _, p := range s.Properties {
		closeObjects(p, false)
	}
	alone := s.AnyOf == nil && s.OneOf == nil && s.AllOf == nil && s.If == nil && s.PatternProperties == nil
	isObject := s.Type == "object" || slices.Contains(s.Types, "object")
	if isObject && alone && s.AdditionalProperties == nil && (root || s.Properties != nil) {
		s.AdditionalProperties = &jsonschema.Schema{Not: &jsonschema.Schema{}}
	}
}
