package mcpfile

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Words in the names of fields with which clients choose the tools of a server, such as includeTools, disabled_tools
// and toolAllowlist. Fields with which tools run without approval have other words too.
var (
	toolWords  = []string{"tool", "function"}
	shutWords  = []string{"exclud", "disab", "deny", "denied", "block", "black", "forbid"}
	askedWords = []string{"auto", "always", "approv", "trust", "confirm", "timeout"}
	openWords  = []string{"include", "inclusion", "including", "enab", "allow", "filter", "white", "selected", "config"}
)

var errTools = errors.New("must be names of tools, without patterns")

// restrict reads a field of another client that chooses tools, and reports whether the field is one. It never adds a
// tool to those that are used. A list that cannot be read is an error, because the file would then permit more than its
// author meant.
func (s *Server) restrict(key string, raw jsontext.Value) (taken bool, err error) {
	key = strings.ToLower(key)
	has := func(words []string) bool {
		return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(key, word) })
	}
	shuts := has(shutWords)
	if !has(toolWords) || has(askedWords) || !shuts && !has(openWords) && key != "tools" {
		return false, nil
	}
	switch kind := raw.Kind(); {
	case kind == '{' && !shuts:
		return true, s.restrictEach(raw)
	case kind == 'n':
		return true, nil
	case kind != '[' && kind != '"' && kind != '{':
		return false, nil
	}
	list, all, err := toolNames(raw)
	switch {
	case err != nil:
		return true, err
	case !shuts && !all:
		s.keep(list)
	case shuts && all:
		s.Only, s.ReadOnly = []string{}, nil
	case shuts:
		s.shut(list)
	}
	return true, nil
}

// restrictEach reads an object: lists of tools such as {"allow": […], "deny": […]}, or the settings of each tool, such
// as {"write": false} and {"write": {"enabled": false}}.
func (s *Server) restrictEach(raw jsontext.Value) error {
	for name, value := range members(raw) {
		switch value.Kind() {
		case '[', '"':
			if taken, err := s.restrict("tools"+name, value); err != nil || !taken {
				return errTools
			}
		case 'f':
			s.shut([]string{name})
			if name == "enabled" { // of all tools
				s.keep(nil)
			}
		case '{':
			var of struct {
				Enabled  *bool `json:"enabled"`
				Disabled bool  `json:"disabled"`
			}
			if json.Unmarshal(value, &of) != nil {
				return errTools
			}
			if of.Disabled || of.Enabled != nil && !*of.Enabled {
				s.shut([]string{name})
			}
		}
	}
	return nil
}

// keep limits the tools that are used to the list.
func (s *Server) keep(list []string) {
	s.Only = slices.DeleteFunc(slices.Clone(list), func(name string) bool {
		return slices.Contains(s.Deny, name) || s.Only != nil && !slices.Contains(s.Only, name)
	})
	if s.Only == nil {
		s.Only = []string{}
	}
}

// shut excludes the tools of the list.
func (s *Server) shut(list []string) {
	in := func(name string) bool { return slices.Contains(list, name) }
	if s.Only != nil {
		s.Only = slices.DeleteFunc(slices.Clone(s.Only), in)
	}
	s.ReadOnly = slices.DeleteFunc(slices.Clone(s.ReadOnly), in)
	for _, name := range list {
		if !slices.Contains(s.Deny, name) {
			s.Deny = append(s.Deny, name)
		}
	}
}

// toolNames reads names of tools: a list, or one name. all reports whether the list is *, which stands for all tools.
func toolNames(raw jsontext.Value) (list []string, all bool, err error) {
	if raw.Kind() == '"' {
		raw = slices.Concat([]byte("["), raw, []byte("]"))
	}
	if json.Unmarshal(raw, &list) != nil {
		return nil, false, errTools
	}
	if slices.Contains(list, "*") {
		return nil, true, nil
	}
	if slices.ContainsFunc(list, func(name string) bool { return strings.ContainsAny(name, "*?[") }) {
		return nil, false, errTools
	}
	return list, false, nil
}
