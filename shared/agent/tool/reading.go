package tool

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// Reading describes a result that is text from strangers (Spec.Untrusted).
type Reading struct {
	Origin     string // source as a card names it: issue 3 of acme/web, https://example.com/
	Repository string // owner/name of the GitHub repository that it was read from, if any
	File       bool   // it is a file of that repository
	Public     bool   // anyone can read it, as far as is known
	Found      string // with Spec.Echoes: the text or addresses that do not come from the caller
}

// Reading describes the result of the call. The origin is never empty.
func (t *Tool) Reading(args, result json.RawMessage) (r Reading) {
	defer func() {
		if recover() != nil || r.Origin == "" {
			r.Origin = "a result of " + t.Name
		}
	}()
	if t.has.reading {
		r = t.reading(args, result)
	}
	return r
}

// Fetches returns the address that the call requests, or "" if its arguments name none.
func (t *Tool) Fetches(args json.RawMessage) (_ string, err error) {
	defer t.recoverPanic(&err, false)
	if !t.has.fetches {
		return "", nil
	}
	return t.fetches(args)
}

// FetchesAddress reports whether the tool has no side effect and its calls request an address that their arguments
// name.
func (t *Tool) FetchesAddress() bool { return t.has.fetches && !t.SideEffect }

// FreeText returns the strings of the arguments that are free text, in the schema's order. These are the strings that
// [Tool.Pinned] leaves out. If the tool has no Bound, they are all strings except the targets. The texts that the call
// changes are left out; [Tool.Changes] returns them. The arguments must come from Normalize or Complete.
func (t *Tool) FreeText(args json.RawMessage) ([]string, error) {
	args, _, err := t.Changes(args)
	if err != nil {
		return nil, err
	}
	fixed := map[string]string{}
	if t.has.pinned {
		pinned, err := t.Pinned(args)
		if err != nil {
			return nil, err
		}
		each(pinned, nil, func(path, s string) { fixed[path] = s })
	}
	targets, err := t.Targets(args)
	if err != nil {
		return nil, err
	}
	var free []string
	each(args, fieldOrder(t.Schema), func(path, s string) {
		is, known := fixed[path]
		reached := slices.ContainsFunc(targets, func(to Target) bool {
			return to == Target{to.Kind, s}.Normal()
		})
		if s != "" && !reached && (!known || is != s) {
			free = append(free, s)
		}
	})
	return free, nil
}

// Strings returns the strings in a JSON value, without the names of fields. Fields of an object are visited in the
// order of their names.
func Strings(value json.RawMessage) (all []string) {
	each(value, nil, func(_, s string) { all = append(all, s) })
	return all
}

// each calls visit with each string in the value and its path. The fields of the outermost object come in the given
// order, then the remaining fields by name.
func each(value json.RawMessage, order []string, visit func(path, s string)) {
	var v any
	if json.Unmarshal(value, &v) == nil {
		walk("", v, order, visit)
	}
}

func walk(path string, v any, order []string, visit func(path, s string)) {
	switch v := v.(type) {
	case string:
		visit(path, v)
	case []any:
		for i, e := range v {
			walk(path+"/"+strconv.Itoa(i), e, nil, visit)
		}
	case map[string]any:
		names := slices.Sorted(maps.Keys(v))
		slices.SortStableFunc(names, func(a, b string) int { return rank(order, a) - rank(order, b) })
		for _, n := range names {
			walk(path+"/"+n, v[n], nil, visit)
		}
	}
}

func rank(order []string, name string) int {
	if i := slices.Index(order, name); i >= 0 {
		return i
	}
	return len(order)
}

// fieldOrder returns the names of a schema's properties in their order of declaration.
func fieldOrder(schema json.RawMessage) (names []string) {
	var s struct {
		Properties json.RawMessage `json:"properties"`
	}
	if json.Unmarshal(schema, &s) != nil {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(s.Properties))
	if _, err := dec.Token(); err != nil {
		return nil
	}
	for dec.More() {
		name, err := dec.Token()
		var skipped json.RawMessage
		if err != nil || dec.Decode(&skipped) != nil {
			return names
		}
		if n, ok := name.(string); ok {
			names = append(names, n)
		}
	}
	return names
}
