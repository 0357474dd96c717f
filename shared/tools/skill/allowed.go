package skill

import (
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/base/strictyaml"
)

var validTool = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_.-]{0,62}$`)

// allowed returns the tools of allowed-tools, each once and sorted. The value is a YAML list, or names separated by
// spaces or commas. An entry with a condition, such as Bash(git:*), is ignored: the tool without its condition is more
// than the author allowed.
func (p *parser) allowed() []string {
	n := p.values["allowed-tools"]
	if n == nil || n.ShortTag() == "!!null" {
		return nil
	}
	p.skill.allowed = n.Line
	items := n.Content
	switch n.Kind {
	case yaml.ScalarNode:
		items = []*yaml.Node{n}
	case yaml.MappingNode:
		p.warn(n, "allowed-tools: a list of tools was expected; it is ignored")
		return nil
	}
	names := map[string]bool{}
	for _, item := range items {
		if item.Kind != yaml.ScalarNode {
			p.warn(item, "allowed-tools: the name of a tool was expected; the entry is ignored")
			continue
		}
		for _, name := range toolsIn(item.Value) {
			if !validTool.MatchString(name) {
				p.warn(item, "allowed-tools: %s is not the name of a tool; the entry is ignored",
					strictyaml.Quoted(name))
				continue
			}
			names[name] = true
		}
	}
	return append([]string{}, slices.Sorted(maps.Keys(names))...)
}

// toolsIn splits a text at the spaces and commas outside of parentheses.
func toolsIn(text string) []string {
	depth := 0
	return strings.FieldsFunc(text, func(r rune) bool {
		switch r {
		case '(':
			depth++
		case ')':
			depth--
		}
		return depth <= 0 && strings.ContainsRune(" \t\n,", r)
	})
}

// For returns the library for an agent with these tools. Skills are often written for other products, so a name in
// allowed-tools that is not one of the agent's tools is ignored with a warning. If none of the names is left, the skill
// does not restrict the tools: the model keeps the agent's tools, and a warning says so.
func (l *Library) For(tools tool.Set) *Library {
	fitted := &Library{warnings: slices.Clone(l.warnings)}
	for _, s := range l.skills {
		s, warnings := s.fit(tools)
		fitted.skills = append(fitted.skills, s)
		fitted.warnings = append(fitted.warnings, warnings...)
	}
	return fitted
}

func (s *Skill) fit(tools tool.Set) (*Skill, []error) {
	if s.AllowedTools == nil {
		return s, nil
	}
	fitted := *s
	fitted.AllowedTools = nil
	var foreign []string
	narrows := false
	for _, name := range s.AllowedTools {
		if tools[name] == nil && !own(name) {
			foreign = append(foreign, strictyaml.Quoted(name))
			continue
		}
		fitted.AllowedTools = append(fitted.AllowedTools, name)
		narrows = narrows || !own(name)
	}
	var warnings []error
	if len(foreign) > 0 {
		warnings = append(warnings, s.fault(s.allowed, "allowed-tools: the agent has no tools with these names, which "+
			"are ignored: %s", strings.Join(foreign, ", ")))
	}
	if !narrows {
		fitted.AllowedTools = nil
		warnings = append(warnings, s.fault(s.allowed,
			"allowed-tools: it names no tool of the agent; the skill %s does not narrow the tools", s.Name))
	}
	return &fitted, warnings
}
