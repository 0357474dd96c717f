package demomodel

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// state is the state of the page: {viewState, interactions, …}. Its shape depends on the page, so it is searched by
// names.
type state struct {
	view         any
	interactions any
}

// readState returns the newest state: the one that came with a tool's result, or else the one in the instructions.
func readState(r fakegemini.Request) state {
	for _, response := range slices.Backward(r.Responses()) {
		if s, ok := findState(string(response.Response)); ok {
			return s
		}
	}
	s, _ := findState(r.System)
	return s
}

// maxObjects bounds the positions of a text that are tried as the start of the state.
const maxObjects = 2000

// findState finds the object with a viewState in a text, plain or as JSON within JSON.
func findState(text string) (state, bool) {
	for range maxObjects {
		at := strings.IndexByte(text, '{')
		if at < 0 {
			return state{}, false
		}
		text = text[at:]
		var v any
		if json.NewDecoder(strings.NewReader(text)).Decode(&v) == nil {
			if s, ok := stateIn(v); ok {
				return s, true
			}
		}
		text = text[1:]
	}
	return state{}, false
}

func stateIn(v any) (found state, ok bool) {
	switch v := v.(type) {
	case map[string]any:
		if view, ok := v["viewState"]; ok {
			return state{view, v["interactions"]}, true
		}
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if found, ok = stateIn(v[name]); ok {
				return found, true
			}
		}
	case string:
		if inner, isJSON := parse(v); isJSON {
			return stateIn(inner)
		}
	}
	return state{}, false
}

// parse decodes a text that is a JSON object.
func parse(text string) (any, bool) {
	var v any
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	return v, strings.HasPrefix(text, "{") && dec.Decode(&v) == nil
}

// item is an item of a list, such as a product: its key and its fields.
type item struct {
	key  string
	said map[string]any
}

// name returns the item's display name.
func (i item) name() string {
	for _, field := range []string{"name", "title", "label"} {
		if s, ok := i.said[field].(string); ok && s != "" {
			return s
		}
	}
	return i.key
}

// text returns the first field whose name contains the word.
func (i item) text(word string) string {
	for _, field := range slices.Sorted(maps.Keys(i.said)) {
		if slices.Contains(wordsOf(field), word) {
			return scalar(i.said[field])
		}
	}
	return ""
}

// items returns the items of a list or of a map.
func items(v any) (out []item) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			if said, ok := e.(map[string]any); ok {
				out = append(out, item{keyOf(said), said})
			}
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			said, ok := v[key].(map[string]any)
			if !ok {
				return nil
			}
			out = append(out, item{key, said})
		}
	}
	return out
}

func keyOf(said map[string]any) string {
	for _, field := range []string{"key", "id", "_id", "productId", "slug"} {
		if s, ok := said[field].(string); ok {
			return s
		}
	}
	return ""
}

// itemsIn returns the named items of all lists, at any depth.
func itemsIn(v any) (out []item) {
	if found := items(v); len(found) > 0 && found[0].name() != found[0].key {
		return found
	}
	if m, ok := v.(map[string]any); ok {
		for _, name := range slices.Sorted(maps.Keys(m)) {
			out = append(out, itemsIn(m[name])...)
		}
	}
	return out
}

// best returns the item whose name has all of the words and the fewest others.
func best(list []item, words []string) (found item, ok bool) {
	most := 0
	for _, i := range list {
		have := wordsOf(i.name())
		if n := score(have, words); n > most && n > 100*(len(words)-1) {
			found, most, ok = i, n, true
		}
	}
	return found, ok
}

// named returns the parts of the view whose name contains the word.
func (s state) named(word string) map[string]any {
	out := map[string]any{}
	view, _ := s.view.(map[string]any)
	for name, v := range view {
		if slices.Contains(wordsOf(name), word) {
			out[name] = v
		}
	}
	return out
}

// coordinate finds an interaction by the words of its last part, on the item with the key, if there is one.
func (s state) coordinate(key string, wanted []string) (at []string, ok bool) {
	most := 0
	for _, c := range coordinates(s.interactions) {
		if n := score(wordsOf(c[len(c)-1]), wanted); n > most && (key == "" || slices.Contains(c, key)) {
			at, most, ok = c, n, true
		}
	}
	return at, ok
}

// hidden reports whether the page hides the item, for example by a filter.
func (s state) hidden(key string) bool { return key != "" && hides(s.interactions, key) }

func hides(v any, key string) bool {
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return hides(e, key) })
	case map[string]any:
		if slices.Contains(strs(v["coordinate"]), key) {
			return v["hidden"] == true
		}
		for _, e := range v {
			if hides(e, key) {
				return true
			}
		}
	}
	return false
}

// coordinates returns all coordinates in v.
func coordinates(v any) (out [][]string) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			out = append(out, coordinates(e)...)
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if at := strs(v[name]); name == "coordinate" && len(at) > 0 {
				out = append(out, at)
				continue
			}
			out = append(out, coordinates(v[name])...)
		}
	}
	return out
}

func strs(v any) (out []string) {
	list, _ := v.([]any)
	for _, e := range list {
		s, ok := e.(string)
		if !ok {
			return nil
		}
		out = append(out, s)
	}
	return out
}
