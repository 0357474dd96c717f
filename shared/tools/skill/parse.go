package skill

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/base/strictyaml"
)

// Limits of the front matter. The format counts characters.
const (
	maxFront         = strictyaml.MaxFile
	maxName          = 64
	maxDescription   = 1024
	maxLicense       = 1024
	maxCompatibility = 500
	maxMetadata      = 64 // the keys
	maxValue         = 1024
	maxHint          = 200
	maxArguments     = 20
)

var (
	formatName = lazyregexp.New(`^[a-z0-9]+(-[a-z0-9]+)*$`) // the rules of the format
	validName  = lazyregexp.New(`^[A-Za-z0-9_-]{1,64}$`)    // the rules of this package
	otherRunes = lazyregexp.New(`[^A-Za-z0-9_-]+`)
)

// parse parses a SKILL.md. folder is the name of the skill's folder, or empty if it has none. A fault means that the
// skill cannot be used. A mistake that leaves the skill usable becomes a warning.
func parse(file string, data []byte, folder string) (*Skill, []error) {
	s := &Skill{file: file}
	if !utf8.Valid(data) {
		return nil, []error{s.fault(0, "the file is not UTF-8")}
	}
	text := strings.TrimPrefix(string(data), "\ufeff") // some editors write a byte order mark
	front, body, err := s.split(strings.ReplaceAll(text, "\r\n", "\n"))
	if err != nil {
		return nil, []error{err}
	}
	p := &parser{skill: s}
	if p.doc, err = strictyaml.Parse(file, []byte(front)); err != nil {
		if p.doc, err = p.repair(front); err != nil {
			return nil, []error{err}
		}
	}
	p.read(folder)
	s.Body = strings.Trim(body, "\r\n")
	return s, p.wrong
}

const fence = "---"

// split returns the front matter and the text below it. An empty line replaces the first fence, to keep the line
// numbers of the file.
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

// A parser reads one front matter. It collects faults; warnings go to the skill.
type parser struct {
	doc    *strictyaml.Document
	skill  *Skill
	values map[string]*yaml.Node
	wrong  []error
}

func (p *parser) fail(n *yaml.Node, format string, args ...any) {
	p.wrong = append(p.wrong, p.doc.Wrong(n, format, args...))
}

func (p *parser) warn(n *yaml.Node, format string, args ...any) {
	p.skill.warnings = append(p.skill.warnings, p.doc.Wrong(n, format, args...))
}

var keyLine = lazyregexp.New(`^([A-Za-z][A-Za-z0-9_-]*:[ \t]+)(.*)`)

// repair parses front matter that is not valid YAML as a whole. An entry that is not valid by itself, such as a
// description with a colon, becomes plain text. Line numbers do not change.
func (p *parser) repair(front string) (*strictyaml.Document, error) {
	var fixed strings.Builder
	line := 1
	for _, entry := range entries(front) {
		_, err := strictyaml.Parse(p.skill.file, []byte(entry))
		key := keyLine.FindStringSubmatch(entry)
		if err != nil && key != nil && strings.TrimSpace(key[2]) != "" {
			p.skill.warnings = append(p.skill.warnings,
				p.skill.fault(line, "the value is not YAML; it is read as plain text"))
			value := strings.TrimSpace(strings.TrimPrefix(entry, key[1]))
			entry = key[1] + "'" + strings.ReplaceAll(value, "'", "''") + "'" +
				strings.Repeat("\n", strings.Count(entry, "\n")-strings.Count(value, "\n"))
		}
		fixed.WriteString(entry)
		line += strings.Count(entry, "\n")
	}
	return strictyaml.Parse(p.skill.file, []byte(fixed.String()))
}

// entries splits front matter before each line that starts a key.
func entries(front string) (all []string) {
	var entry strings.Builder
	for line := range strings.Lines(front) {
		if strings.IndexAny(line, " \t-#\n") != 0 {
			all = append(all, entry.String())
			entry.Reset()
		}
		entry.WriteString(line)
	}
	return append(all, entry.String())
}

var keys = []string{"name", "description", "license", "compatibility", "metadata", "allowed-tools",
	"disable-model-invocation", "user-invocable", "argument-hint", "arguments"}

func (p *parser) read(folder string) {
	p.values = map[string]*yaml.Node{}
	var ignored []string
	for i := 0; i < len(p.doc.Root.Content); i += 2 {
		key := p.doc.Root.Content[i].Value
		p.values[key] = p.doc.Root.Content[i+1]
		if !slices.Contains(keys, key) {
			ignored = append(ignored, strictyaml.Quoted(key))
		}
	}
	if len(ignored) > 0 {
		p.warn(nil, "these keys are not in the format and are ignored: %s", strings.Join(ignored, ", "))
	}
	s := p.skill
	p.name(folder)
	if s.Description = p.text("description", maxDescription); s.Description == "" {
		p.fail(cmp.Or(p.values["description"], p.doc.Root), "description is missing")
	}
	s.License = p.text("license", maxLicense)
	s.Compatibility = p.text("compatibility", maxCompatibility)
	s.Metadata = p.metadata()
	s.AllowedTools = p.allowed()
	p.invocation()
}

// name reads the skill's name. Invalid characters become hyphens. A skill without a name gets the name of its folder. A
// name in another script, which the model's calls cannot contain, becomes a number that is always the same.
func (p *parser) name(folder string) {
	written, n := p.text("name", maxName), p.values["name"]
	name := cmp.Or(usable(written), usable(folder), numbered(cmp.Or(written, folder)))
	p.skill.Name = name
	switch {
	case name == "":
		p.fail(cmp.Or(n, p.doc.Root), "name is missing")
	case written == "":
		p.warn(n, "name is missing; the skill is loaded as %s, the name of its folder", name)
	case name != written:
		p.warn(n, "name: a name has lowercase letters, digits and single hyphens; the skill is loaded as %s", name)
	case !formatName.MatchString(name):
		p.warn(n, "name: a name has lowercase letters, digits and single hyphens; %s is loaded as it is", name)
	case folder != "" && name != folder:
		p.warn(n, "name: the folder is called %s; the skill is loaded as %s", strictyaml.Quoted(folder), name)
	}
}

// usable returns the name with a hyphen for each run of invalid characters.
func usable(name string) string {
	name = strings.Trim(otherRunes.ReplaceAllString(name, "-"), "-")
	return name[:min(len(name), maxName)]
}

// numbered returns a name for a text without any valid character, or "" for an empty text.
func numbered(text string) string {
	if text == "" {
		return ""
	}
	return fmt.Sprintf("skill-%08x", crc32.ChecksumIEEE([]byte(text)))
}

// text returns a text of at most the given number of characters, or "" if the key is missing.
func (p *parser) text(key string, most int) string {
	n := p.values[key]
	switch {
	case n == nil || n.ShortTag() == "!!null":
		return ""
	case n.Kind != yaml.ScalarNode:
		p.warn(n, "%s: a text was expected; the value is ignored", key)
		return ""
	}
	text := strings.TrimSpace(n.Value)
	if runes := []rune(text); len(runes) > most {
		p.warn(n, "%s: %d characters; the limit is %d, and the rest is ignored", key, len(runes), most)
		text = strings.TrimSpace(string(runes[:most]))
	}
	return text
}

// metadata returns the values as texts. A number such as 1.0 keeps its spelling. A list or mapping becomes JSON.
func (p *parser) metadata() map[string]string {
	n := p.values["metadata"]
	switch {
	case n == nil || n.ShortTag() == "!!null":
		return nil
	case n.Kind != yaml.MappingNode || len(n.Content) > 2*maxMetadata:
		p.warn(n, "metadata: a mapping of at most %d keys was expected; it is ignored", maxMetadata)
		return nil
	}
	all := map[string]string{}
	for i := 0; i < len(n.Content); i += 2 {
		key, node := n.Content[i].Value, n.Content[i+1]
		text, err := p.asText(node)
		switch {
		case err != nil:
			p.warn(node, "metadata: the value of %s is ignored: %v", strictyaml.Quoted(key), err)
		case len(text) > maxValue || len(key) > maxValue:
			p.warn(node, "metadata: the value of %s is ignored; the limit is %d bytes", strictyaml.Quoted(key),
				maxValue)
		default:
			all[key] = text
		}
	}
	return all
}

func (p *parser) asText(n *yaml.Node) (string, error) {
	if n.Kind == yaml.ScalarNode {
		return n.Value, nil
	}
	value, err := p.doc.Value(n)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(value)
	return string(text), err
}
