package skill

import (
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/countersign-run/countersign/shared/lazyregexp"
	"github.com/countersign-run/countersign/shared/strictyaml"
)

// Bounds of the front matter. The format counts characters.
const (
	maxFront         = strictyaml.MaxFile
	maxName          = 64
	maxDescription   = 1024
	maxLicense       = 1024
	maxCompatibility = 500
	maxMetadata      = 64 // keys
	maxValue         = 1024
	maxAllowed       = 100 // tools
)

var (
	validName = lazyregexp.New(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	validTool = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_.-]{0,62}$`)
)

// parse reads a SKILL.md. folder is the name that its skill must have, or empty where any will do. The skill is nil if
// there is no front matter to speak of.
func parse(file string, data []byte, folder string) (*Skill, []error) {
	s := &Skill{file: file}
	if !utf8.Valid(data) {
		return nil, []error{s.fault(0, "the file is not UTF-8")}
	}
	text := strings.TrimPrefix(string(data), "\ufeff") // which editors leave
	front, body, err := s.split(text)
	if err != nil {
		return nil, []error{err}
	}
	doc, err := strictyaml.Parse(file, []byte(front))
	if err != nil {
		return nil, []error{err}
	}
	p := &parser{doc: doc, skill: s}
	p.read(folder)
	s.Body = strings.Trim(body, "\r\n")
	return s, p.wrong
}

const fence = "---"

// split returns the front matter and the text below it. An empty line stands for the first fence, so that the lines of
// the front matter have the numbers that they have in the file.
func (s *Skill) split(text string) (front, body string, err error) {
	first, rest, _ := strings.Cut(text, "\n")
	if strings.TrimRight(first, " \t\r") != fence {
		return "", "", s.fault(1,
			"front matter was expected: a line of %s, the keys name and description, and again %s",
			fence, fence)
	}
	at := 0
	for line := range strings.Lines(rest) {
		if strings.TrimRight(line, " \t\r\n") == fence {
			front, body = "\n"+rest[:at], rest[at+len(line):]
			if strings.TrimSpace(front) == "" {
				return "", "", s.fault(1, "the front matter is empty; name and description were expected")
			}
			return front, body, nil
		}
		at += len(line)
	}
	return "", "", s.fault(1, "the front matter has no end; a line of %s was expected", fence)
}

// A parser reads one front matter and gathers what is wrong with it.
type parser struct {
	doc    *strictyaml.Document
	skill  *Skill
	values map[string]*yaml.Node
	wrong  []error
}

func (p *parser) fail(n *yaml.Node, format string, args ...any) {
	p.wrong = append(p.wrong, p.doc.Wrong(n, format, args...))
}

func (p *parser) read(folder string) {
	fields, wrong := p.doc.Fields(p.doc.Root, "name", "description", "license", "compatibility", "metadata",
		"allowed-tools")
	p.values, p.wrong = fields.Values, wrong
	for _, key := range []string{"name", "description"} {
		if _, err := fields.Required(key); err != nil {
			p.wrong = append(p.wrong, err)
		}
	}
	s := p.skill
	s.Name = p.text("name", maxName)
	switch n := p.values["name"]; {
	case s.Name == "":
	case !validName.MatchString(s.Name):
		p.fail(n, "name: small letters and digits were expected, with single hyphens between them")
	case folder != "" && s.Name != folder:
		p.fail(n, "name: %s was expected, as the skill's folder is called", strictyaml.Quoted(folder))
	}
	s.Description = p.text("description", maxDescription)
	s.License = p.text("license", maxLicense)
	s.Compatibility = p.text("compatibility", maxCompatibility)
	s.Metadata = p.metadata()
	s.AllowedTools = p.allowed()
}

// text returns a text of 1 to most characters, or nothing if the key is absent.
func (p *parser) text(key string, most int) string {
	n := p.values[key]
	if n == nil {
		return ""
	}
	text := strings.TrimSpace(n.Value)
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" || text == "" || utf8.RuneCountInString(text) > most {
		p.fail(n, "%s: a text of 1 to %d characters was expected", key, most)
		return ""
	}
	return text
}

// metadata returns the values as texts: 1.0 is what its author wrote, and no number here.
func (p *parser) metadata() map[string]string {
	n := p.values["metadata"]
	if n == nil {
		return nil
	}
	if n.Kind != yaml.MappingNode || len(n.Content) > 2*maxMetadata {
		p.fail(n, "metadata: a mapping of at most %d keys was expected", maxMetadata)
		return nil
	}
	all := map[string]string{}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		if value.Kind != yaml.ScalarNode || value.ShortTag() == "!!null" || len(value.Value) > maxValue ||
			len(key.Value) > maxValue {
			p.fail(value, "metadata: a text of at most %d bytes was expected for %s", maxValue,
				strictyaml.Quoted(key.Value))
			continue
		}
		all[key.Value] = value.Value
	}
	return all
}

// allowed returns the tools that are named, each once and sorted.
func (p *parser) allowed() []string {
	n := p.values["allowed-tools"]
	if n == nil {
		return nil
	}
	p.skill.allowed = n.Line
	names := map[string]bool{}
	for _, name := range strings.Fields(p.text("allowed-tools", maxAllowed*64)) {
		if !validTool.MatchString(name) {
			p.fail(n, "allowed-tools: %s is no name of a tool; names were expected, with spaces between them",
				strictyaml.Quoted(name))
		}
		names[name] = true
	}
	if len(names) > maxAllowed {
		p.fail(n, "allowed-tools: at most %d tools were expected", maxAllowed)
	}
	return slices.Sorted(maps.Keys(names))
}
