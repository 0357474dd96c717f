package demomodel

import (
	"regexp"
	"slices"
	"strings"
)

// wish is a prompt's request for the page.
type wish struct {
	kind  wishKind
	what  string // the thing, in the user's words
	n     int    // the number of things, or of stars
	value string // what to fill in, to choose or to comment
}

type wishKind int

const (
	putWish    wishKind = iota // a thing into the cart
	removeWish                 // and out of it
	cartWish                   // what is in it
	findWish
	rateWish
	moodWish
	clickWish
	fillWish
	selectWish
)

const (
	aNumber = `\d{1,3}|a\s+couple\s+of|a\s+dozen|` + numbers
	theCart = `(?:my\s+|the\s+|your\s+)?(?:shopping\s+)?(?:cart|basket|bag)`
	please  = `^\W*(?:(?:please|kindly|can|could|would|will|you|now|then|ok|okay|hi|hello|i\s+want\s+to|i['’]d\s+like\s+to|let['’]s)\b[\s,]*)*`
	article = `(?:the\s+|an?\s+|some\s+|any\s+|my\s+)?`
)

// phrases are tried in order; the groups are named after the fields of a wish. They are forms of a request, and know no
// product.
var phrases = []struct {
	kind wishKind
	re   *regexp.Regexp
}{
	{putWish, regexp.MustCompile(`(?i)` + please +
		`(?:find|look\s+for|search\s+for|get|take|pick|choose)\s+(?:me\s+)?` + article +
		`(?P<what>.+?)[,;]?\s+(?:and|then)\s+(?:then\s+)?(?:put|add|place)\s+(?:(?P<n>` + aNumber +
		`)\b\s*)?(?:of\s+(?:it|them|those|these)\s+)?(?:(?:it|them|those|these)\s+)?(?:in|into|to)\s+` + theCart)},
	{putWish, regexp.MustCompile(`(?i)` + please + `(?:put|add|place)\s+(?:(?P<n>` + aNumber +
		`)\s+)?(?:of\s+)?(?:the\s+|more\s+)?(?P<what>.+?)\s+(?:in|into|to)\s+` + theCart)},
	{removeWish, regexp.MustCompile(`(?i)` + please + `(?:remove|take|delete)\s+` + article +
		`(?P<what>.+?)\s+(?:out\s+of|from)\s+` + theCart)},
	{cartWish, regexp.MustCompile(`(?i)^\W*(?:what|show|how|is|are|list|tell|do)\b.*\b(?:cart|basket)\b`)},
	{rateWish, regexp.MustCompile(`(?i)` + please + `(?:rate|give)\s+` + article +
		`(?P<what>.+?)\s+(?:with\s+|at\s+)?(?P<n>\d|one|two|three|four|five)(?:\s+(?:out\s+)?of\s+(?:5|five))?\s*stars?\b(?:\s*(?:,|:|and\s+say|saying|because|with\s+the\s+comment)\s*(?P<value>.+))?`)},
	{moodWish, regexp.MustCompile(
		`(?i)^\W*(?:today[\s,]+)?(?:i\s+(?:feel|am\s+feeling|am)|i['’]m(?:\s+feeling)?|feeling)\s+(?:(?:so|very|really|pretty|quite|a\s+bit|a\s+little|just)\s+)?(?P<what>\p{L}+)(?:\s+today)?(?:\W+(?:because(?:\s+of)?|and|but|,)\s*(?P<value>.+))?`)},
	{fillWish, regexp.MustCompile(`(?i)` + please +
		`fill\s+(?:in\s+|out\s+)?(?:the\s+)?(?P<what>.+?)\s+(?:with|as|by)\s+(?P<value>.+)$`)},
	{fillWish, regexp.MustCompile(`(?i)` + please +
		`(?:type|enter)\s+(?P<value>.+?)\s+(?:into|in)\s+(?:the\s+)?(?P<what>.+?)(?:\s+(?:field|box|input))?[.!]?$`)},
	{clickWish, regexp.MustCompile(`(?i)` + please +
		`(?:click|press|push|tap)\s+(?:on\s+)?(?:the\s+)?(?P<what>.+?)(?:\s+button)?[.!]?$`)},
	{clickWish, regexp.MustCompile(`(?i)` + please + `(?P<what>check\s*out)\b`)},
	{selectWish, regexp.MustCompile(`(?i)` + please +
		`(?:select|choose)\s+(?P<value>.+?)\s+(?:for|as|in)\s+(?:the\s+|my\s+)?(?P<what>.+?)[.!]?$`)},
	{findWish, regexp.MustCompile(`(?i)` + please +
		`(?:find|look\s+for|search(?:\s+for)?|show\s+me|do\s+you\s+(?:have|sell))\s+` + article +
		`(?P<what>.+?)[.!?]*$`)},
}

// wishOf parses a prompt that wants something of the page.
func wishOf(prompt string) (wish, bool) {
	if len(prompt) > maxPrompt {
		return wish{}, false
	}
	prompt = strings.TrimSpace(strings.ToValidUTF8(prompt, "?"))
	for _, p := range phrases {
		m := p.re.FindStringSubmatch(prompt)
		if m == nil {
			continue
		}
		w := wish{kind: p.kind, n: 1}
		for i, name := range p.re.SubexpNames() {
			switch name {
			case "what":
				w.what = strings.Trim(m[i], " \t\n\"“”'.,!?")
			case "value":
				w.value = strings.Trim(m[i], " \t\n\"“”'")
			case "n":
				w.n = count(m[i])
			}
		}
		return w, true
	}
	return wish{}, false
}

// count returns the number of things; one by default.
func count(s string) int {
	s = strings.Join(strings.Fields(strings.ToLower(s)), " ")
	switch s {
	case "":
		return 1
	case "a couple of":
		return 2
	case "a dozen":
		return 12
	}
	return number(s)
}

// feelings maps the user's words to those of a form.
var feelings = [][]string{
	{"great", "good", "happy", "wonderful", "fantastic", "excellent", "amazing", "awesome", "lovely", "super"},
	{"fine", "ok", "okay", "alright", "neutral", "well"},
	{"tired", "exhausted", "sleepy", "weary"},
	{"sad", "bad", "unhappy", "down", "awful", "terrible", "low"},
}

// among returns the option that equals the word or is similar to it.
func among(options []string, word string) (string, bool) {
	word = strings.ToLower(word)
	for _, o := range options {
		if strings.ToLower(o) == word {
			return o, true
		}
	}
	for _, like := range feelings {
		for _, o := range options {
			if slices.Contains(like, word) && slices.Contains(like, strings.ToLower(o)) {
				return o, true
			}
		}
	}
	return "", false
}
