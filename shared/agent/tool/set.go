package tool

import (
	"maps"
	"slices"
)

// Set holds the tools of a profile by name.
type Set map[string]*Tool

// NewSet returns a set of the tools. It panics if two of them have the same name.
func NewSet(tools ...*Tool) Set {
	s := Set{}
	for _, t := range tools {
		if s[t.Name] != nil {
			panic("tool.NewSet: duplicate tool name " + t.Name)
		}
		s[t.Name] = t
	}
	return s
}

// Reads returns the paths of all documents that tell the tools what the user has linked, each once.
func (s Set) Reads(in Scope) []string {
	var paths []string
	for _, t := range s {
		paths = append(paths, t.Reads(in)...)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// Names returns the tools' names in sorted order.
func (s Set) Names() []string { return slices.Sorted(maps.Keys(s)) }
