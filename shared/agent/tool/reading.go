package tool

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// Reading says what a result is that is text from strangers (Spec.Untrusted).
type Reading struct {
	Origin     string // as a card names it: issue 3 of acme/web, https://example.com/
	Repository string // owner/name on GitHub, where it was read from a repository
	File       bool   // it is a file of that repository
	Public     bool   // it is known that everybody can read it
	Found      string // of a tool that echoes (Spec.Echoes): the text or addresses that do not come from its caller
}

// Reading returns what the result of the call is. The origin is never empty.
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

// Fetches returns the address that a call without a side effect asks for, or "" where the tool asks for none that its
// arguments name.
func (t *Tool) Fetches(args json.RawMessage) (_ string, err error) {
	defer t.recoverPanic(&err, false)
	if !t.has.fetches {
		return "", nil
	}
	return t.fetches(args)
}

// FetchesAddress reports whether the tool's calls without a side effect ask for an address that they name.
func (t *Tool) FetchesAddress() bool { return t.has.fetches && !t.SideEffect }

// FreeText returns the strings of the arguments that are free text, in the schema's order: those that [Tool.Bound]
// leaves out, or all but the targets where the tool does not say. The arguments must come from Normalize.
func (t *Tool) FreeText(args json.RawMessage) ([]string, error) {
	fixed := map[string]string{}
	if t.has.bound {
		bound, err := t.Bound(args)
		if err != nil {
			return nil, err
		}
		each(bound, nil, func(path, s string) { fixed[path] = s })
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

// Strings returns the strings in a JSON value, names of fields aside: those of an object in the order of the names.
func Strings(value json.RawMessage) (all []string) {
	each(value, nil, func(_, s string) { all = append(all, s) })
	return all
}

// each calls visit with each string in the value and where it stands. The fields of the outermost object come in the
// order, the others behind them by their names.
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

// fieldOrder returns the names of a schema's properties as they stand there.
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
