package action

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"

	"github.com/countersign-run/countersign/shared/base/strictyaml"
	"github.com/countersign-run/countersign/shared/base/visible"
)

// The limits of a file's preview.
const (
	maxShown    = 50
	maxLabel    = 100 // bytes; also the limit of a name
	maxNames    = 500
	maxTemplate = 200 // bytes
)

// readPreview reads the preview on the approval's card: a list of arguments, or a mapping with a title and such a
// list.
func (m *Metadata) readPreview(s section) error {
	n := s.Values["preview"]
	if n == nil || n.Kind != yaml.MappingNode {
		return m.readShown(s, n)
	}
	p, err := s.section(n, "title", "fields")
	if err != nil {
		return err
	}
	if err := m.readTitle(p); err != nil {
		return err
	}
	return m.readShown(p, p.Values["fields"])
}

// readTitle reads a title such as "Rate {productId} with {stars} stars". Each name in braces must be a required
// argument.
func (m *Metadata) readTitle(s section) error {
	n := s.Values["title"]
	if n == nil {
		return nil
	}
	rest, err := s.line("title", maxTemplate)
	if err != nil {
		return err
	}
	for rest != "" {
		text, after, _ := strings.Cut(rest, "{")
		if strings.Contains(text, "}") {
			return s.Wrong(n, "title: a name in braces was expected, such as {id}")
		}
		if text != "" {
			m.Title = append(m.Title, Piece{Text: text})
		}
		if len(text) == len(rest) {
			return nil
		}
		name, behind, closed := strings.Cut(after, "}")
		p := m.Input.Properties[name]
		switch {
		case !closed:
			return s.Wrong(n, "title: a name in braces was expected, such as {id}")
		case p == nil:
			return s.noProperty(n, "title", name)
		case p.Type == "object" || p.Type == "array" || p.Default == nil && !slices.Contains(m.Input.Required, name):
			return s.Wrong(n, "title: %s may be absent or has many values; an argument that each call has was expected",
				strictyaml.Quoted(name))
		}
		m.Title, rest = append(m.Title, Piece{Field: name}), behind
	}
	return nil
}

func (m *Metadata) readShown(s section, list *yaml.Node) error {
	if list == nil {
		return nil
	}
	if list.Kind != yaml.SequenceNode || len(list.Content) > maxShown {
		return s.Wrong(list, "preview: a list of at most %d entries {label, field} was expected", maxShown)
	}
	for _, n := range list.Content {
		e, err := s.section(n, "label", "field", "names")
		if err != nil {
			return err
		}
		shown, err := m.shownIn(e, n)
		if err != nil {
			return err
		}
		m.Preview = append(m.Preview, shown)
	}
	return nil
}

func (m *Metadata) shownIn(e section, n *yaml.Node) (shown Shown, err error) {
	if shown.Field, err = e.Text("field", 64); err != nil {
		return shown, err
	}
	if shown.Label, err = e.line("label", maxLabel); err != nil {
		return shown, err
	}
	p := m.Input.Properties[shown.Field]
	switch {
	case shown.Field == "":
		return shown, e.Wrong(n, "preview: label and field were expected")
	case p == nil:
		return shown, e.noProperty(n, "preview", shown.Field)
	case slices.ContainsFunc(m.Preview, func(o Shown) bool { return o.Field == shown.Field }):
		return shown, e.Wrong(n, "preview: duplicate field %s", strictyaml.Quoted(shown.Field))
	}
	if shown.Label == "" {
		shown.Label = p.Title
	}
	if shown.Label == "" {
		return shown, e.Wrong(n, "preview: label and field were expected, or a title of %s in the inputSchema",
			strictyaml.Quoted(shown.Field))
	}
	shown.Names, err = e.names(p)
	return shown, err
}

// names reads the display names of the values of p. Two values cannot share a name, because a reader has to
// distinguish them.
func (s section) names(p *jsonschema.Schema) (map[string]string, error) {
	n := s.Values["names"]
	if n == nil {
		return nil, nil
	}
	if n.Kind != yaml.MappingNode || len(n.Content) == 0 || len(n.Content) > 2*maxNames || p.Type != "string" {
		return nil, s.Wrong(n, "names: a mapping of 1 to %d values of a string to their names was expected", maxNames)
	}
	names, used := map[string]string{}, map[string]bool{}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		_, again := names[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode || again:
			return nil, s.Wrong(key, "names: each value once was expected")
		case len(p.Enum) > 0 && !slices.Contains(p.Enum, any(key.Value)):
			return nil, s.Wrong(key, "names: %s is none of the enum", strictyaml.Quoted(key.Value))
		case value.Kind != yaml.ScalarNode || !plainLine(value.Value, maxLabel) || used[value.Value]:
			return nil, s.Wrong(value, "names: a name of at most %d bytes was expected, which no other value has",
				maxLabel)
		}
		names[key.Value], used[value.Value] = value.Value, true
	}
	return names, nil
}

// line returns a text of one line without hidden characters, or an empty one if the key is missing.
func (s section) line(key string, most int) (string, error) {
	text, err := s.Text(key, most)
	if err == nil && s.Values[key] != nil && !plainLine(text, most) {
		err = s.Wrong(s.Values[key], "%s: one line of at most %d bytes was expected, with nothing hidden in it", key,
			most)
	}
	return text, err
}

func plainLine(text string, most int) bool {
	shown, hidden := visible.Line(text)
	return text != "" && len(text) <= most && utf8.ValidString(text) && !hidden && shown == text &&
		!strings.ContainsAny(text, "\r\n\t")
}
