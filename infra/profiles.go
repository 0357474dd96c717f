package infra

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	core       = "core" // the profile that every deployment contains
	everything = "all"  // not in Profiles: every function
)

// Select returns the functions that a deployment of the named functions and profiles consists of, in the list's order:
// the named ones, the profile core, and what these need. The profile all is every function. The error names each name
// that is neither. Terraform selects in the same way (terraform/modules/agent/functions.tf).
func (l List) Select(names []string) ([]Function, error) {
	wanted := map[string]bool{}
	var unknown []string
	for _, name := range append([]string{core}, names...) {
		members, ok := l.named(name)
		if !ok {
			unknown = append(unknown, name)
		}
		for _, f := range members {
			wanted[f.Name] = true
			for _, need := range f.Needs {
				wanted[need] = true
			}
		}
	}
	if len(unknown) > 0 {
		return nil, fmt.Errorf("unknown function %s: the profiles are %s and %s, and the functions %s",
			strings.Join(unknown, ", "), strings.Join(slices.Sorted(maps.Keys(l.Profiles)), ", "), everything,
			strings.Join(l.names(), ", "))
	}
	return slices.DeleteFunc(slices.Clone(l.Functions), func(f Function) bool { return !wanted[f.Name] }), nil
}

// named returns the functions of a profile, or the function with this name.
func (l List) named(name string) ([]Function, bool) {
	if name == everything {
		return l.Functions, true
	}
	names, ok := l.Profiles[name]
	if !ok {
		names = []string{name}
	}
	var found []Function
	for _, f := range l.Functions {
		if slices.Contains(names, f.Name) {
			found = append(found, f)
		}
	}
	return found, len(found) > 0
}

func (l List) names() (names []string) {
	for _, f := range l.Functions {
		names = append(names, f.Name)
	}
	return names
}

// checkProfiles checks that profiles and needs name functions. If a function needs another one, it must also list what
// that one needs.
func (l List) checkProfiles() error {
	all, needs := l.names(), map[string][]string{}
	for _, f := range l.Functions {
		needs[f.Name] = f.Needs
	}
	for name, members := range l.Profiles {
		if name == everything || slices.Contains(all, name) {
			return fmt.Errorf("profile %q has the name of a function, or all", name)
		}
		for _, member := range members {
			if !slices.Contains(all, member) {
				return fmt.Errorf("profile %q names %q, which is not a function", name, member)
			}
		}
	}
	for _, f := range l.Functions {
		for _, need := range f.Needs {
			if !slices.Contains(all, need) {
				return fmt.Errorf("function %q needs %q, which is not a function", f.Name, need)
			}
			for _, next := range needs[need] {
				if next != f.Name && !slices.Contains(f.Needs, next) {
					return fmt.Errorf("function %q needs %q, so it must also name %q, which that one needs", f.Name,
						need, next)
				}
			}
		}
	}
	return nil
}
