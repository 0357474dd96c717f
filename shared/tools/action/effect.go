package action

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/base/strictyaml"
)

// Categories of an action. Queries change nothing.
var (
	queries  = []string{"query", "read", "read-only"}
	commands = []string{"action", "mutation", "server-action"}
)

var (
	classes = []string{string(tool.ClassRead), string(tool.ClassChange), string(tool.ClassDestructive),
		string(tool.ClassOpaque)}
	validKind = lazyregexp.New(`^[a-z][a-z0-9-]{0,31}$`)
)

// readEffect reads the class of a call's effect, and whether the call needs approval. The default is the safer value.
func (m *Metadata) readEffect(s section) (err error) {
	category, err := s.OneOf("category", "", slices.Concat(queries, commands)...)
	if err != nil {
		return err
	}
	class, err := s.OneOf("class", "", classes...)
	if err != nil {
		return err
	}
	m.Class = tool.Class(class)
	reads, err := s.Flag("readOnly", slices.Contains(queries, category) || m.Class == tool.ClassRead)
	if err != nil {
		return err
	}
	if m.SideEffect, err = s.Flag("sideEffect", !reads); err != nil {
		return err
	}
	if reads && m.SideEffect {
		return s.Wrong(s.Values["sideEffect"],
			"sideEffect: an action that only reads has none; false was expected, or no readOnly")
	}
	if err := m.checkClass(s); err != nil {
		return err
	}
	return m.readApproval(s)
}

// checkClass sets the class if the file has none, and otherwise checks that it fits the side effect.
func (m *Metadata) checkClass(s section) error {
	switch {
	case m.Class == "" && m.SideEffect:
		m.Class = tool.ClassChange
	case m.Class == "":
		m.Class = tool.ClassRead
	case m.SideEffect && m.Class == tool.ClassRead:
		return s.Wrong(s.Values["class"], "class: an action with a side effect is no read; one of %s was expected",
			strings.Join(classes[1:], ", "))
	case !m.SideEffect && m.Class != tool.ClassRead:
		return s.Wrong(s.Values["class"], "class: an action that changes nothing is a read; read was expected, or an "+
			"action with a side effect")
	}
	return nil
}

// readApproval reads whether a call needs approval. A call of a class with a warning always does, because the
// approval shows the warning.
func (m *Metadata) readApproval(s section) error {
	def := tool.NotRequired
	if m.SideEffect {
		def = tool.Required
	}
	approval, err := s.OneOf("approval", string(def), string(tool.Required), string(tool.NotRequired))
	if err != nil {
		return err
	}
	m.Approval = tool.Approval(approval)
	if m.Approval == tool.NotRequired && (m.Class == tool.ClassDestructive || m.Class == tool.ClassOpaque) {
		return s.Wrong(s.Values["approval"], "approval: required was expected, because its user must be warned of an "+
			"action of the class %s", m.Class)
	}
	return nil
}

// readCall reads the settings for calls and their results.
func (m *Metadata) readCall(s section) (err error) {
	if m.Timeout, err = s.duration("timeout", 0, time.Second, maxCall); err != nil {
		return err
	}
	if m.Final, err = s.Flag("final", false); err != nil {
		return err
	}
	m.Untrusted, err = s.Flag("untrusted", false)
	return err
}

// readTargets reads which arguments name the recipients or things that a call reaches.
func (m *Metadata) readTargets(s section) error {
	list := s.Values["targets"]
	if list == nil {
		return nil
	}
	if list.Kind != yaml.SequenceNode || len(list.Content) == 0 || len(list.Content) > maxTargets {
		return s.Wrong(list, "targets: a list of 1 to %d entries {kind, field} was expected", maxTargets)
	}
	for _, n := range list.Content {
		e, err := s.section(n, "kind", "field")
		if err != nil {
			return err
		}
		kind, err := e.Required("kind")
		if err != nil {
			return err
		}
		if kind.Kind != yaml.ScalarNode || !validKind.MatchString(kind.Value) {
			return s.Wrong(kind, "targets: a kind was expected: address, or up to 32 lower-case letters, digits "+
				"and hyphens")
		}
		field, err := e.Required("field")
		if err != nil {
			return err
		}
		reached := Reached{Kind: tool.TargetKind(kind.Value), Field: field.Value}
		switch {
		case m.Input.Properties[reached.Field] == nil:
			return s.noProperty(field, "targets", reached.Field)
		case !m.names(reached):
			return s.Wrong(field, "targets: %s cannot name a target: a string or a list of strings was expected, or "+
				"of a kind other than address an integer or a list of them", strictyaml.Quoted(reached.Field))
		case slices.ContainsFunc(m.Targets, func(r Reached) bool { return r.Field == reached.Field }):
			return s.Wrong(field, "targets: duplicate field %s", strictyaml.Quoted(reached.Field))
		}
		m.Targets = append(m.Targets, reached)
	}
	return nil
}

// names reports whether the argument has a type that can name targets, or is a list of that type.
func (m *Metadata) names(r Reached) bool {
	p := m.Input.Properties[r.Field]
	if p.Type == "array" {
		if p = p.Items; p == nil {
			return false
		}
	}
	return p.Type == "string" || p.Type == "integer" && r.Kind != tool.TargetAddress
}

// readBound reads which arguments are not free text.
func (m *Metadata) readBound(s section) error {
	list := s.Values["bound"]
	if list == nil {
		return nil
	}
	if list.Kind != yaml.SequenceNode {
		return s.Wrong(list, "bound: a list of the arguments that are not free text was expected")
	}
	m.Pinned = []string{}
	for _, n := range list.Content {
		switch {
		case n.Kind != yaml.ScalarNode || m.Input.Properties[n.Value] == nil:
			return s.noProperty(n, "bound", n.Value)
		case slices.Contains(m.Pinned, n.Value):
			return s.Wrong(n, "bound: duplicate field %s", strictyaml.Quoted(n.Value))
		}
		m.Pinned = append(m.Pinned, n.Value)
	}
	for _, r := range m.Targets {
		if !slices.Contains(m.Pinned, r.Field) {
			return s.Wrong(list, "bound: %s names a target and is not free text; it must be in the list",
				strictyaml.Quoted(r.Field))
		}
	}
	return nil
}

// noProperty returns the error for a name that is not an argument.
func (d *document) noProperty(n *yaml.Node, key, name string) error {
	return d.Wrong(n, "%s: %s is none of inputSchema's properties", key, strictyaml.Quoted(name))
}

// declare copies the file's settings for the tool into the declaration.
func (m *Metadata) declare(d *tool.Declaration) {
	d.Description, d.SideEffect, d.Class, d.Approval = m.Description, m.SideEffect, m.Class, m.Approval
	d.Timeout, d.Final, d.Untrusted = m.Timeout, m.Final, m.Untrusted
	d.Input, d.Output, d.Targets = m.Input, m.Output, m.targets
	if m.Pinned != nil {
		d.Pinned = m.pinned
	}
}

// targets returns the targets that the arguments name, without duplicates.
func (m *Metadata) targets(args json.RawMessage) (out []tool.Target, err error) {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(args, &values); err != nil {
		return nil, err
	}
	for _, r := range m.Targets {
		raw, given := values[r.Field]
		if !given {
			continue
		}
		list := []json.RawMessage{raw}
		if m.Input.Properties[r.Field].Type == "array" {
			if err := json.Unmarshal(raw, &list); err != nil {
				return nil, err
			}
		}
		for _, v := range list {
			if t := r.target(v); !slices.Contains(out, t) {
				out = append(out, t)
			}
		}
	}
	return out, nil
}

// target returns the target for a value. An address without a normal form is unchanged, and the policy refuses it.
func (r Reached) target(raw json.RawMessage) tool.Target {
	value := string(raw)
	var text string
	if json.Unmarshal(raw, &text) == nil {
		value = text
	}
	return tool.Target{Kind: r.Kind, Value: value}.Normal()
}

// pinned returns the arguments that are not free text.
func (m *Metadata) pinned(args json.RawMessage) (json.RawMessage, error) {
	var values map[string]json.RawMessage
	if err := json.Unmarshal(args, &values); err != nil {
		return nil, err
	}
	for name := range values {
		if !slices.Contains(m.Pinned, name) {
			delete(values, name)
		}
	}
	raw, err := strictjson.Marshal(values)
	if err != nil {
		return nil, err
	}
	return strictjson.Canonical(raw)
}
