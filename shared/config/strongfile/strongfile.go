// Package strongfile reads the operator's file STRONG_APPROVAL: which decisions need a passkey. Each mistake is
// reported at the start, all at once, with its line and the expected value.
package strongfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/countersign-run/countersign/shared/agent/passkey"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/address"
	"github.com/countersign-run/countersign/shared/base/strictyaml"
)

// File is what the file says.
type File struct {
	Rules passkey.Rules
	// Site is the ID that passkeys are bound to: the host of the console, or a domain above it. Empty: the host.
	Site string
}

// Limits of a file.
const (
	maxRules = 100
	maxText  = 256 // bytes
)

// Load reads the file. Its error joins one [*strictyaml.Problem] for each mistake.
func Load(path string) (File, error) {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return File{}, &strictyaml.Problem{File: path, Text: "the file cannot be opened"}
	}
	defer root.Close()
	data, err := strictyaml.Read(root, filepath.Base(path))
	if err != nil {
		return File{}, err
	}
	return Parse(filepath.Base(path), data)
}

// Parse decodes the file's text. name is the name in the errors.
func Parse(name string, data []byte) (File, error) {
	d, err := strictyaml.Parse(name, data)
	if err != nil {
		return File{}, err
	}
	p := &parser{doc: d}
	s := p.section(d.Root, "alwaysAllow", "planGrants", "calls", "site")
	f := File{Rules: passkey.Rules{Always: p.flag(s, "alwaysAllow"), Grants: p.flag(s, "planGrants")},
		Site: p.text(s, "site")}
	for _, n := range p.list(s, "calls") {
		f.Rules.Calls = append(f.Rules.Calls, p.rule(n))
	}
	if len(p.wrong) == 0 && !f.Rules.Always && !f.Rules.Grants && len(f.Rules.Calls) == 0 {
		p.fail(d.Root, "no decision needs a passkey; expected: alwaysAllow, planGrants or calls")
	}
	return f, errors.Join(p.wrong...)
}

// parser collects the mistakes of a file.
type parser struct {
	doc   *strictyaml.Document
	wrong []error
}

func (p *parser) add(err error) {
	if err != nil {
		p.wrong = append(p.wrong, err)
	}
}

func (p *parser) fail(n *yaml.Node, format string, args ...any) {
	p.add(p.doc.Wrong(n, format, args...))
}

func (p *parser) section(n *yaml.Node, keys ...string) strictyaml.Section {
	s, wrong := p.doc.Fields(n, keys...)
	p.wrong = append(p.wrong, wrong...)
	return s
}

func (p *parser) flag(s strictyaml.Section, key string) bool {
	v, err := s.Flag(key, false)
	p.add(err)
	return v
}

func (p *parser) text(s strictyaml.Section, key string) string {
	v, err := s.Text(key, maxText)
	p.add(err)
	return v
}

// list returns the values of a sequence.
func (p *parser) list(s strictyaml.Section, key string) []*yaml.Node {
	n := s.Values[key]
	switch {
	case n == nil:
		return nil
	case n.Kind != yaml.SequenceNode || len(n.Content) == 0 || len(n.Content) > maxRules:
		p.fail(n, "%s: a list of 1 to %d values was expected", key, maxRules)
		return nil
	}
	return n.Content
}

func (p *parser) rule(n *yaml.Node) passkey.Rule {
	s := p.section(n, "tool", "class", "recipientsOutside", "amount")
	class, err := s.OneOf("class", "", string(tool.ClassRead), string(tool.ClassChange), string(tool.ClassDestructive),
		string(tool.ClassOpaque))
	p.add(err)
	r := passkey.Rule{Tool: p.text(s, "tool"), Class: tool.Class(class)}
	if list := p.list(s, "recipientsOutside"); list != nil {
		r.Outside = p.domains(list)
	}
	if amount := s.Values["amount"]; amount != nil {
		r.Amount = p.amount(amount)
	}
	return r
}

func (p *parser) domains(list []*yaml.Node) passkey.Domains {
	texts := make([]string, len(list))
	for i, n := range list {
		texts[i] = n.Value
		if n.Kind != yaml.ScalarNode || strings.Contains(n.Value, ",") {
			p.fail(n, "recipientsOutside: a domain was expected")
			return nil
		}
	}
	own, err := address.ParsePatterns(strings.Join(texts, ","))
	if err != nil {
		p.fail(list[0], "recipientsOutside: domains (example.com), domains below one (*.example.com) or "+
			"addresses were expected, in ASCII")
		return nil
	}
	return own
}

func (p *parser) amount(n *yaml.Node) *passkey.Amount {
	s := p.section(n, "at", "above")
	for _, key := range []string{"at", "above"} {
		_, err := s.Required(key)
		p.add(err)
	}
	at, limit := p.text(s, "at"), s.Values["above"]
	if at != "" && !strings.HasPrefix(at, "/") {
		p.fail(s.Values["at"], "at: a JSON Pointer was expected, such as /total/value")
	}
	a := &passkey.Amount{At: at}
	if limit == nil {
		return a
	}
	v, err := p.doc.Value(limit)
	switch number := v.(type) {
	case int64:
		a.Above = float64(number)
	case float64:
		a.Above = number
	}
	if _, isText := v.(string); err != nil || isText || a.Above < 0 || limit.Kind != yaml.ScalarNode || v == nil {
		p.fail(limit, "above: a number of at least 0 was expected")
	}
	return a
}
