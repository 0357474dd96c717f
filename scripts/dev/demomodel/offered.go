package demomodel

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// offered is a tool that may be called, with the words of its name: click-add-to-cart is click, add, to, cart.
type offered struct {
	fakegemini.Declaration
	words  []string
	fields map[string]field
	order  []string // the names of the fields, those first that are needed
	needed []string
}

// field holds the used parts of a property's schema.
type field struct {
	Type        any     `json:"type"` // a word, or a list of words
	Description string  `json:"description"`
	Enum        []any   `json:"enum"`
	Minimum     float64 `json:"minimum"`
	Items       *field  `json:"items"`
}

func newOffered(d fakegemini.Declaration) *offered {
	t := &offered{Declaration: d, words: wordsOf(d.Name), fields: map[string]field{}}
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if json.Unmarshal(d.Parameters, &schema) != nil {
		return t // it is called without arguments
	}
	for _, name := range append(schema.Required, slices.Sorted(maps.Keys(schema.Properties))...) {
		var f field
		_ = json.Unmarshal(schema.Properties[name], &f) // a field of another shape has no bounds
		if _, known := t.fields[name]; !known {
			t.fields[name], t.order = f, append(t.order, name)
		}
	}
	t.needed = schema.Required
	return t
}

// is reports whether the field's values may be of one of the types.
func (f field) is(types ...string) bool {
	have := strings.ToLower(fmt.Sprint(f.Type))
	return slices.ContainsFunc(types, func(t string) bool { return strings.Contains(have, t) })
}

func (f field) options() []string {
	out := make([]string, len(f.Enum))
	for i, v := range f.Enum {
		out[i] = fmt.Sprint(v)
	}
	return out
}

// tool returns the tool of that name, or nil if it may not be called.
func (d *dialogue) tool(name string) *offered {
	if at := slices.IndexFunc(d.tools, func(t *offered) bool { return t.Name == name }); at >= 0 {
		return d.tools[at]
	}
	return nil
}

// find returns the tool whose name begins with the kind and has the most wanted words and the fewest others.
func (d *dialogue) find(kind string, wanted ...string) *offered {
	best, _ := highest(d.tools, func(t *offered) int {
		if !t.is(kind) || t.generic() {
			return 0
		}
		return score(t.words[1:], wanted)
	})
	return best
}

// highest returns the first element of the highest score above zero.
func highest[T any](list []T, score func(T) int) (best T, ok bool) {
	most := 0
	for _, e := range list {
		if n := score(e); n > most {
			best, most, ok = e, n, true
		}
	}
	return best, ok
}

// unruled returns the tools that no rule can call.
func (d *dialogue) unruled() []*offered {
	return slices.DeleteFunc(slices.Clone(d.tools), func(t *offered) bool { return t.onPage() || d.ruled(t) })
}

func (d *dialogue) ruled(t *offered) bool {
	return slices.ContainsFunc(d.requests, func(r rule) bool { return r.tool == t.Name })
}

func (t *offered) is(kind string) bool { return len(t.words) > 0 && t.words[0] == kind }

var wordBreak = lazyregexp.New(`[^\p{L}\p{N}]+`)

// wordsOf splits a name at punctuation and capital letters, into lower-case words.
func wordsOf(name string) []string {
	var b strings.Builder
	var last rune
	for _, r := range name {
		if unicode.IsUpper(r) && unicode.IsLower(last) {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(r))
		last = r
	}
	return strings.Fields(wordBreak.ReplaceAllString(b.String(), " "))
}

// score is positive if one of the wanted words occurs.
func score(words, wanted []string) int {
	if strings.Join(words, "") == strings.Join(wanted, "") { // "check out" is checkout
		return 100 * len(wanted)
	}
	missing := slices.DeleteFunc(slices.Clone(wanted), func(w string) bool { return contains(words, w) })
	if len(missing) == len(wanted) {
		return 0
	}
	return max(1, 100*(len(wanted)-len(missing))-len(words))
}

// sameWord reports whether the words are equal, apart from an s at the end.
func sameWord(a, b string) bool { return strings.TrimSuffix(a, "s") == strings.TrimSuffix(b, "s") }

// contains reports whether all words are known.
func contains(known []string, words ...string) bool {
	return !slices.ContainsFunc(words, func(w string) bool {
		return !slices.ContainsFunc(known, func(k string) bool { return sameWord(k, w) })
	})
}
