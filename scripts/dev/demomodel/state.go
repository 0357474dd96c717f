package demomodel

import (
	"cmp"
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
const maxObjects = 200

// findState finds the object with a viewState in a text, plain or as JSON within JSON.
func findState(text string) (state, bool) {
	for range maxObjects {
		at := strings.IndexByte(text, '{')
		if at < 0 {
			return state{}, false
		}
		text = text[at:]
		var v any
		decoder := json.NewDecoder(strings.NewReader(text))
		if decoder.Decode(&v) != nil {
			text = text[1:]
			continue
		}
		if s, ok := stateIn(v); ok {
			return s, true
		}
		text = text[decoder.InputOffset():]
	}
	return state{}, false
}

func stateIn(v any) (found state, ok bool) {
	if inner, ok := parse(v); ok {
		return stateIn(inner)
	}
	m, _ := v.(map[string]any)
	if view, ok := m["viewState"]; ok {
		return state{view, m["interactions"]}, true
	}
	for _, below := range children(v) {
		if found, ok = stateIn(below); ok {
			break
		}
	}
	return found, ok
}

// children returns the elements of a list, or the values of an object in the order of their names.
func children(v any) (out []any) {
	if list, ok := v.([]any); ok {
		return list
	}
	m, _ := v.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[name])
	}
	return out
}

// item is an item of a list, such as a product: its key and its fields.
type item struct {
	key  string
	said map[string]any
}

// name returns the item's display name.
func (i item) name() string {
	return cmp.Or(scalar(i.said["name"]), scalar(i.said["title"]), scalar(i.said["label"]), i.key)
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

// priced returns the item's name with its price.
func (i item) priced() string {
	if price := i.text("price"); price != "" {
		return i.name() + " (" + price + ")"
	}
	return i.name()
}

// items returns the items of a list or of a map.
func items(v any) (out []item) {
	for _, e := range children(v) {
		if said, ok := e.(map[string]any); ok {
			out = append(out, item{cmp.Or(scalar(said["key"]), scalar(said["id"]), scalar(said["_id"]),
				scalar(said["productId"]), scalar(said["slug"])), said})
		}
	}
	m, _ := v.(map[string]any)
	if len(m) > 0 && len(m) != len(out) {
		return nil
	}
	for n, key := range slices.Sorted(maps.Keys(m)) {
		out[n].key = key
	}
	return out
}

// itemsIn returns the named items of all lists, at any depth.
func itemsIn(v any) (out []item) {
	if found := items(v); len(found) > 0 && found[0].name() != found[0].key {
		return found
	}
	if m, ok := v.(map[string]any); ok {
		for _, below := range children(m) {
			out = append(out, itemsIn(below)...)
		}
	}
	return out
}

// best returns the item whose name has all of the words and the fewest others.
func best(list []item, words []string) (item, bool) {
	return highest(list, func(i item) int { return score(wordsOf(i.name()), words) - 100*(len(words)-1) })
}

// named returns the parts of the view whose names contain the word.
func (s state) named(word string) (parts []part) {
	view, _ := s.view.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(view)) {
		if words := wordsOf(name); slices.Contains(words, word) {
			parts = append(parts, part{words, view[name]})
		}
	}
	return parts
}

type part struct {
	words []string // of its name
	value any
}

// interaction is a thing on the page that can be used.
type interaction struct {
	at     []string // its coordinate: the last part names it, another part may be the key of an item
	hidden bool     // for example by a filter
}

func interactions(v any) (out []interaction) {
	m, _ := v.(map[string]any)
	if parts := children(m["coordinate"]); len(parts) > 0 {
		i := interaction{hidden: m["hidden"] == true}
		for _, part := range parts {
			i.at = append(i.at, scalar(part))
		}
		return append(out, i)
	}
	for _, below := range children(v) {
		out = append(out, interactions(below)...)
	}
	return out
}

// coordinate finds an interaction by the words of its last part, on the item with the key, if there is one.
func (s state) coordinate(key string, wanted []string) ([]string, bool) {
	found, ok := highest(interactions(s.interactions), func(i interaction) int {
		if key != "" && !slices.Contains(i.at, key) {
			return 0
		}
		return score(wordsOf(i.at[len(i.at)-1]), wanted)
	})
	return found.at, ok
}

// hidden reports whether the page hides the item.
func (s state) hidden(key string) bool {
	return key != "" && slices.ContainsFunc(interactions(s.interactions), func(i interaction) bool {
		return i.hidden && slices.Contains(i.at, key)
	})
}
