package demomodel

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// surface is what a request offers beside mail and calendar: the controls of the page that its user has open, declared
// actions of the server, and the page's state. It matches by names, and has no knowledge of a particular page.
type surface struct {
	tools []control
	state state
}

// control is a tool with its name in words: click-add-to-cart is the kind "click" and the words add, to, cart.
type control struct {
	fakegemini.Declaration
	kind   string
	words  []string
	fields map[string]field
	needed []string
}

// field has the used parts of a property's schema.
type field struct {
	Type string   `json:"type"`
	Enum []string `json:"enum"`
}

// The kinds of controls.
const (
	actionKind  = "action"
	clickKind   = "click"
	fillKind    = "fill"
	selectKind  = "select"
	toggleKind  = "toggle"
	triggerTool = "trigger-interaction"
	fillTool    = "fill-input"
)

var kinds = []string{actionKind, clickKind, fillKind, selectKind, toggleKind}

func readSurface(r fakegemini.Request) surface {
	s := surface{state: readState(r)}
	for _, d := range r.Tools {
		words := wordsOf(d.Name)
		if len(words) == 0 || !slices.Contains(kinds, words[0]) && d.Name != triggerTool {
			continue
		}
		c := control{Declaration: d, kind: words[0], words: words[1:]}
		if d.Name == triggerTool || d.Name == fillTool {
			c.kind = d.Name
		}
		c.readSchema()
		s.tools = append(s.tools, c)
	}
	return s
}

// readSchema sets the fields from the schema. An unsupported schema has no fields.
func (c *control) readSchema() {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if json.Unmarshal(c.Parameters, &schema) != nil {
		return
	}
	c.fields, c.needed = map[string]field{}, schema.Required
	for name, raw := range schema.Properties {
		var f field
		_ = json.Unmarshal(raw, &f) // a field of another shape has no bounds
		c.fields[name] = f
	}
}

var wordBreak = regexp.MustCompile(`[^\p{L}\p{N}]+`)

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

// find returns the control of the kind whose name has the most wanted words and the fewest others.
func (s surface) find(kind string, wanted ...string) (best control, ok bool) {
	most := 0
	for _, c := range s.tools {
		if score := c.score(wanted); c.kind == kind && score > most {
			best, most, ok = c, score, true
		}
	}
	return best, ok
}

// score is positive if the name has one of the wanted words.
func (c control) score(wanted []string) int { return score(c.words, wanted) }

func score(words, wanted []string) int {
	if strings.Join(words, "") == strings.Join(wanted, "") { // "check out" is checkout
		return 100 * len(wanted)
	}
	hits := 0
	for _, w := range wanted {
		if slices.ContainsFunc(words, func(have string) bool { return sameWord(have, w) }) {
			hits++
		}
	}
	if hits == 0 {
		return 0
	}
	return max(1, 100*hits-len(words))
}

// sameWord reports whether the words are equal, apart from a plural s.
func sameWord(a, b string) bool { return strings.TrimSuffix(a, "s") == strings.TrimSuffix(b, "s") }

// offers reports whether the control can be used on the item: its schema may list the possible keys.
func (c control) offers(key string) bool {
	f, ok := c.fields["key"]
	return !ok && key == "" || ok && (len(f.Enum) == 0 || slices.Contains(f.Enum, key))
}

// use returns the call of a page control on the item with the key, with a value if it takes one.
func (c control) use(key, value string) fakegemini.Call {
	args := map[string]any{}
	if _, ok := c.fields["key"]; ok && key != "" {
		args["key"] = key
	}
	if f, ok := c.fields["value"]; ok && value != "" {
		args["value"] = f.typed(value)
	}
	return fakegemini.Call{Name: c.Name, Args: args}
}

// typed converts the value to a number if the field is one.
func (f field) typed(value string) any {
	if f.Type == "integer" || f.Type == "number" {
		return json.Number(value)
	}
	return value
}

// press finds the control that does what is wanted, or the generic tool with the matching coordinate.
func (s surface) press(kind string, item item, value string, wanted ...string) (fakegemini.Call, bool) {
	if c, ok := s.find(kind, wanted...); ok && c.offers(item.key) {
		return c.use(item.key, value), true
	}
	at, ok := s.state.coordinate(item.key, wanted)
	if !ok {
		return fakegemini.Call{}, false
	}
	if kind == clickKind && s.has(triggerTool) {
		return fakegemini.Call{Name: triggerTool, Args: map[string]any{"coordinate": at, "event": "click"}}, true
	}
	return fakegemini.Call{Name: fillTool, Args: map[string]any{"coordinate": at, "value": value}}, kind != clickKind &&
		s.has(fillTool)
}

func (s surface) has(kind string) bool {
	return slices.ContainsFunc(s.tools, func(c control) bool { return c.kind == kind })
}
