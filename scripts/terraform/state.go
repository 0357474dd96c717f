package main

import "encoding/json"

// state is the state of a run, with a mock provider's values.
type state struct {
	Root module `json:"root_module"`
}

type module struct {
	Resources []resource `json:"resources"`
	Children  []module   `json:"child_modules"`
}

type resource struct {
	Address string          `json:"address"`
	Type    string          `json:"type"`
	Values  json.RawMessage `json:"values"`
}

// all returns the resources of the types that match.
func (s state) all(match func(kind string) bool) (found []resource) {
	var walk func(module)
	walk = func(m module) {
		for _, r := range m.Resources {
			if match(r.Type) {
				found = append(found, r)
			}
		}
		for _, child := range m.Children {
			walk(child)
		}
	}
	walk(s.Root)
	return found
}

// read reads the values of the resources of one type.
func read[T any](s state, kind string) ([]T, error) {
	var out []T
	for _, r := range s.all(func(k string) bool { return k == kind }) {
		var v T
		if err := json.Unmarshal(r.Values, &v); err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}
