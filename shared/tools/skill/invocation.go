package skill

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// invocation reads the keys for the skill's users and arguments. The open format does not have these keys; Claude Code
// and many skills do.
func (p *parser) invocation() {
	s := p.skill
	s.UserOnly = p.flag("disable-model-invocation", false)
	s.ModelOnly = !p.flag("user-invocable", true)
	if s.UserOnly && s.ModelOnly {
		p.warn(p.values["user-invocable"], "user-invocable: neither a user nor the model can invoke the skill %s",
			s.Name)
	}
	s.ArgumentHint = p.hint()
	s.Arguments = p.arguments()
}

// flag reads true or false. Any other value counts as the stricter one, which is the opposite of the default.
func (p *parser) flag(key string, byDefault bool) bool {
	n := p.values[key]
	if n == nil || n.ShortTag() == "!!null" {
		return byDefault
	}
	switch strings.ToLower(strings.TrimSpace(n.Value)) {
	case "true", "yes", "on":
		return true
	case "false", "no", "off":
		return false
	}
	p.warn(n, "%s: true or false was expected; the value counts as %t", key, !byDefault)
	return !byDefault
}

// hint reads argument-hint. YAML parses a hint such as [version] as a list, so hint returns the source text.
func (p *parser) hint() string {
	const key = "argument-hint"
	n := p.values[key]
	if n == nil || n.Kind != yaml.SequenceNode {
		return strings.Join(strings.Fields(p.text(key, maxHint)), " ")
	}
	var items []string
	for _, item := range n.Content {
		if item.Kind != yaml.ScalarNode {
			p.warn(n, "%s: a text was expected; the value is ignored", key)
			return ""
		}
		items = append(items, strings.Join(strings.Fields(item.Value), " "))
	}
	text := "[" + strings.Join(items, ", ") + "]"
	if len([]rune(text)) > maxHint {
		p.warn(n, "%s: %d characters; the limit is %d, and the value is ignored", key, len([]rune(text)), maxHint)
		return ""
	}
	return text
}

var argumentName = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]{0,62}$`)

// arguments reads the names of the arguments in their order, from a list or from a text with names separated by spaces
// or commas.
func (p *parser) arguments() (names []string) {
	const key = "arguments"
	n := p.values[key]
	if n == nil || n.ShortTag() == "!!null" {
		return nil
	}
	items := n.Content
	if n.Kind == yaml.ScalarNode {
		items = []*yaml.Node{n}
	}
	nested := n.Kind == yaml.MappingNode
	for _, item := range items {
		nested = nested || item.Kind != yaml.ScalarNode
		for _, name := range strings.Fields(strings.ReplaceAll(item.Value, ",", " ")) {
			names = append(names, strings.TrimPrefix(name, "$"))
		}
	}
	wrong := func(name string) bool { return !argumentName.MatchString(name) || name == "ARGUMENTS" }
	if nested || len(names) > maxArguments || slices.ContainsFunc(names, wrong) {
		p.warn(n, "%s: a list of at most %d names was expected, of letters, digits and underscores; it is ignored", key,
			maxArguments)
		return nil
	}
	return names
}
