package demomodel

import (
	"regexp"
	"strings"
	"sync"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// A phrase is a form of a request, matched from its first word to its last, and written as a pattern of plain words:
//
//	word      this word
//	(a|b c)   one of these
//	[a b]     these words, or nothing
//	{name}    any words, or those that slotPatterns allows; the slot has this name
//	{name|a}  one of these
//	…         anything at the beginning or the end, a few words in the middle
//
// Case, quotations, courtesies at the beginning, and signs between the words do not count. Slots whose names differ
// only in a digit at the end are one slot.
//
// A phrase is compiled when it is first tried.
type phrase func() *regexp.Regexp

const (
	courtesy = `[^\pL\pN\x01]*(?:(?:please|kindly|can|could|would|will|shall|may|you|we|now|then|ok|okay|hi|hello|` +
		`hey|dear\s+assistant|` +
		`also|just|i\s+want(?:\s+you)?\s+to|i\s+need(?:\s+you)?\s+to|i['’]d\s+like(?:\s+you)?\s+to|` +
		`let['’]s)\b[\s,.!]*)*`
	aNumber  = `\d{1,3}|a\s+couple\s+of|a\s+dozen|` + numbers
	freeEnd  = `[,;:)]*(?:\s+\(?|$)`
	wordEnd  = `[,;:.!?)]*(?:\s+\(?|$)`
	fewWords = `(?:\S+\s+){0,5}?`
)

// slotPatterns are the slots that accept only certain words.
var slotPatterns = map[string]string{"n": aNumber, "to": addressList, "cc": addressList, "bcc": addressList,
	"word": `\pL+`, "name": `\pL[\pL'’.-]*(?:\s+\pL[\pL'’.-]*)?`,
	"them": `her|him|them|both|everyone|everybody`, "asks": `if|whether|when|where|what|who|why|how|` +
		`which`, "tool": `[\pL_][\pL\pN_.:-]*`}

var phraseToken = lazyregexp.New(`…|\{[^}]*\}|[\[\]()|]|\s+|[^\s\[\](){}|…]+`)

func phrases(patterns ...string) []phrase {
	out := make([]phrase, len(patterns))
	for i, p := range patterns {
		out[i] = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(compile(p)) })
	}
	return out
}

func compile(pattern string) string {
	pattern, anywhere := strings.CutPrefix(pattern, "…")
	pattern, open := strings.CutSuffix(pattern, "…")
	var b strings.Builder
	b.WriteString(`(?is)^(?P<lead>`)
	if anywhere {
		b.WriteString(`(?:.*?[\s,;:.!?(])??)`)
	} else {
		b.WriteString(courtesy + `)`)
	}
	for _, token := range phraseToken.FindAllString(pattern, -1) {
		switch {
		case strings.TrimSpace(token) == "":
		case token == "…":
			b.WriteString(fewWords)
		case token == "[" || token == "(":
			b.WriteString(`(?:`)
		case token == "]":
			b.WriteString(`)?`)
		case token == ")" || token == "|":
			b.WriteString(token)
		case token[0] == '{':
			b.WriteString(slotPattern(token[1 : len(token)-1]))
		default:
			b.WriteString(strings.ReplaceAll(regexp.QuoteMeta(token), "'", "['’]") + wordEnd)
		}
	}
	if open {
		return b.String()
	}
	return b.String() + `[\s.!?]*$`
}

func slotPattern(slot string) string {
	name, one, given := strings.Cut(slot, "|")
	if !given {
		one = slotPatterns[strings.TrimRight(name, "0123456789")]
	}
	if one == "" {
		return `(?P<` + name + `>.+?)` + freeEnd
	}
	return `(?P<` + name + `>` + strings.ReplaceAll(one, " ", `\s+`) + `)` + wordEnd
}

// match returns the slots that the text fills, and the position where the request begins.
func (p phrase) match(t text) (slots map[string]text, at int, ok bool) {
	m := p().FindStringSubmatchIndex(t.mask)
	if m == nil {
		return nil, 0, false
	}
	slots = map[string]text{}
	for i, name := range p().SubexpNames() {
		if name = strings.TrimRight(name, "0123456789"); name == "" || m[2*i] < 0 {
			continue
		}
		slots[name] = slots[name].and(t.slice(m[2*i], closed(t.mask, m[2*i], m[2*i+1])))
	}
	return slots, len(slots["lead"].raw), true
}

// smiley matches signs at the end that belong to a text.
var smiley = lazyregexp.New(`^[:;]-?[)(]+`)

// closed returns the end of a slot, after a closing parenthesis that belongs to it, and after a smiley.
func closed(mask string, start, end int) int {
	open := func() bool {
		return strings.Count(mask[start:end], "(") > strings.Count(mask[start:end], ")")
	}
	for end < len(mask) && mask[end] == ')' && open() {
		end++
	}
	return end + len(smiley.FindString(mask[end:]))
}
