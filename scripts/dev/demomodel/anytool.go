package demomodel

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// Rules that call a tool without its own rule. A prompt can use the tool's name, or all words of the name (“use
// note_write with {"text":"x"}”, “call shout with text hello”, “shout hello”). If no other rule takes the request, some
// words of the tool's name and description are enough.
var (
	namedToolRules  = []rule{{phrases: phrases("{request}"), questions: true, call: calling((*dialogue).named)}}
	wordedToolRules = []rule{{phrases: phrases("{request}"), questions: true, fallback: true,
		call: calling((*dialogue).worded)}}
)

func calling(find func(*dialogue, text) (*offered, text)) func(*ask) (any, string) {
	return func(a *ask) (any, string) {
		if t, rest := find(a.dialogue, a.slots["request"]); t != nil {
			return a.callOf(t, rest)
		}
		return nil, ""
	}
}

var (
	using = lazyregexp.New(`(?i)^` + courtesy + `(?:(?:use|call|run|invoke|try)\s+(?:the\s+)?(?:tool\s+)?)?`)
	chunk = lazyregexp.New(`[^\s,;:!?"()\x01]+[\s,;:!?]*`)
	// small lists words that may occur between the words of a tool's name; glue lists words that may follow the name.
	small = strings.Fields("a an the my me tool action of for to what what's is are show tell give get make do")
	glue  = lazyregexp.New(
		`(?i)^(?:[\s,;:]*\b(?:with|that|saying|to(?:\s+say)?|args|arguments|and|of|for|about|as)\b)*[\s,;:]*`)
)

// named returns the tool that the text names in full (the longest such name), and the text after the name.
func (d *dialogue) named(t text) (*offered, text) {
	t = t.from(len(using.FindString(t.mask)))
	tool := d.tool(strings.TrimRight(chunk.FindString(t.mask), " \t\n,;:.!?"))
	if tool == nil {
		tool, _ = highest(d.unruled(), func(tool *offered) int {
			left, _, _ := tool.spelled(t, false)
			return len(tool.words) - 100*left
		})
	}
	return tool.behind(t, false)
}

// worded returns the tool whose name and description have the most words in common with the beginning of the text, and
// the rest of the text.
func (d *dialogue) worded(t text) (*offered, text) {
	first := wordsOf(chunk.FindString(t.mask))
	tool, _ := highest(d.unruled(), func(tool *offered) int {
		verb := wordsOf(chunk.FindString(tool.Description))
		if len(first) == 0 || !contains(append(verb, tool.words...), first...) {
			return 0
		}
		left, found, _ := tool.spelled(t, true)
		return 10*(len(tool.words)-left) + found - 1
	})
	return tool.behind(t, true)
}

func (t *offered) behind(said text, described bool) (*offered, text) {
	if t == nil {
		return nil, said
	}
	_, _, end := t.spelled(said, described)
	return t, said.from(end)
}

// spelled removes the words of the tool's name, and optionally those of its description, from the beginning of the
// text. It returns how many words of the name are left, how many others were found, and where the last of them ends.
func (t *offered) spelled(said text, described bool) (left, found, end int) {
	var others []string
	if described {
		others = wordsOf(t.Description)
	}
	name := slices.DeleteFunc(slices.Clone(t.words), func(w string) bool { return w == actionKind })
	for _, m := range chunk.FindAllStringIndex(said.mask, 12) {
		switch words := wordsOf(said.mask[m[0]:m[1]]); {
		case len(words) == 0: // a quotation
			return len(name), found, end
		case contains(name, words...):
			name = slices.DeleteFunc(name, func(w string) bool { return contains(words, w) })
			end = m[1]
		case contains(small, words...):
		case contains(others, words...):
			found, end = found+1, m[1]
		default:
			return len(name), found, end
		}
	}
	return len(name), found, end
}

// callOf returns the call of the tool with the values in the text, or the missing value to ask for.
func (a *ask) callOf(t *offered, said text) (any, string) {
	said = said.from(len(glue.FindString(said.mask)))
	if strings.HasPrefix(said.raw, "{") && json.Valid([]byte(said.raw)) {
		return fakegemini.Call{Name: t.Name, Args: json.RawMessage(said.raw)}, ""
	}
	args := map[string]any{}
	t.fill(args, said)
	if a.reply.raw != "" {
		t.fill(args, a.reply)
	}
	for _, name := range t.needed {
		if _, known := args[name]; !known {
			what := excerpt(strings.TrimSuffix(name+": "+t.fields[name].Description, ": "), 120)
			return args, fmt.Sprintf(
				"“%s” needs %s. Please say it, or “use %[1]s with {…}” with all arguments as JSON.", t.Name,
				what)
		}
	}
	return fakegemini.Call{Name: t.Name, Args: args}, ""
}

// fill finds values for the fields that have none: after their names (“with text hello and times 3”), by their type,
// and as the rest of the text.
func (t *offered) fill(args map[string]any, said text) {
	left := said
	labels := t.labels(said)
	for i, l := range labels {
		end := len(said.raw)
		if i+1 < len(labels) {
			end = labels[i+1].start
		}
		args[l.name] = t.fields[l.name].value(said.slice(l.end, end))
		left = left.blank(l.start, end)
	}
	for _, words := range []bool{false, true} { // what only one kind of field takes, and then what any other does
		for _, name := range t.order {
			f := t.fields[name]
			if _, known := args[name]; known || (f.pattern() == anything) != words ||
				!words && len(f.Enum) == 0 && len(t.needed) > 0 && !slices.Contains(t.needed, name) {
				continue
			}
			left = left.from(len(glue.FindString(left.mask)))
			if m := f.pattern().FindStringIndex(left.mask); m != nil {
				args[name] = f.value(left.slice(m[0], m[1]))
				left = left.blank(m[0], m[1])
			}
		}
	}
}

type label struct {
	name       string
	start, end int
}

// labels finds the names of fields that introduce a value.
func (t *offered) labels(said text) (out []label) {
	names := map[string]string{}
	var forms []string
	for _, name := range t.order {
		if words := wordsOf(name); len(words) > 0 {
			names[strings.Join(words, "")] = name
			forms = append(forms, strings.Join(words, `[\s_-]*`))
		}
	}
	slices.SortFunc(forms, func(a, b string) int { return len(b) - len(a) }) // “order id” is not “order”
	form := `(?:the\s+)?(` + strings.Join(forms, "|") + `)`
	re := lazyregexp.New(`(?i)(?:^|(?:[,;]|\bwith|\band)\s+)` + form + `\b(?:\s*[:=]\s*|\s+(?:is\s+)?)|\b` + form +
		`\s*[:=]\s*`)
	for _, m := range re.FindAllStringSubmatchIndex(said.mask, -1) {
		words := said.mask[max(m[2], m[4]):max(m[3], m[5])]
		if name, ok := names[strings.Join(wordsOf(strings.ToLower(words)), "")]; ok {
			out = append(out, label{name, m[0], m[1]})
		}
	}
	return out
}

var (
	numeral   = lazyregexp.New(`(?i)-?\b\d+(?:\.\d+)?\b|\b(?:` + strings.TrimPrefix(numbers, "a|an|") + `)\b`)
	anything  = lazyregexp.New(`(?s)[^\s,;:.!?](?:.*\S)?`)
	nothing   = lazyregexp.New(`[^\x00-\x{10FFFF}]`)
	separator = lazyregexp.New(`\s*(?:,\s*and\b|,|;|\band\b)\s*`)
)

// pattern matches a value of the field in a text.
func (f field) pattern() *lazyregexp.Regexp {
	switch {
	case len(f.Enum) > 0:
		options := regexp.QuoteMeta(strings.Join(f.options(), "\n"))
		return lazyregexp.New(`(?i)\b(?:` + strings.ReplaceAll(options, "\n", "|") + `)\b`)
	case f.is("integer", "number"):
		return numeral
	case f.is("boolean", "object"):
		return nothing
	}
	return anything
}

// value returns the value of the field in the text. A value that fits no type stays text, because the tool has better
// errors.
func (f field) value(said text) any {
	words := said.plain()
	for i, option := range f.options() {
		if strings.EqualFold(option, words) {
			return f.Enum[i]
		}
	}
	switch n := numeral.FindString(strings.ToLower(words)); {
	case f.is("integer", "number") && spelled[n] > 0:
		return spelled[n]
	case f.is("integer", "number") && json.Valid([]byte(n)): // 007 is none
		return json.Number(n)
	case f.is("boolean"):
		return !slices.Contains(strings.Fields("no false off not"), strings.ToLower(words))
	case f.is("array"):
		item, out := field{}, []any{}
		if f.Items != nil {
			item = *f.Items
		}
		for _, one := range separator.Split(words, 20) {
			out = append(out, item.value(text{one, one}))
		}
		return out
	case f.is("object") && json.Valid([]byte(said.raw)):
		return json.RawMessage(said.raw)
	}
	return words
}

// forced returns a call if the answer must be a call and no rule has one: it calls the tool that fits best, with the
// values in the prompt.
func (d *dialogue) forced() fakegemini.Call {
	prompt := read(d.last())
	t, rest := d.named(prompt)
	if t == nil {
		t, rest = d.worded(prompt)
	}
	if t == nil {
		t = d.tools[0]
	}
	args := map[string]any{}
	t.fill(args, rest)
	for _, name := range t.needed {
		if _, known := args[name]; !known {
			args[name] = t.fields[name].some(prompt)
		}
	}
	return fakegemini.Call{Name: t.Name, Args: args}
}

// some returns any value of the field's type.
func (f field) some(said text) any {
	switch {
	case len(f.Enum) > 0:
		return f.Enum[0]
	case f.is("integer", "number"):
		return max(1, f.Minimum)
	case f.is("object"):
		return map[string]any{}
	}
	return f.value(said)
}
