package demomodel

import (
	"strings"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

var (
	called = lazyregexp.New(`(?i)\b(?:called|named|titled|entitled)\s+`)
	// invited matches guests after an inviting word. The names before an address then end at that word.
	invited  = lazyregexp.New(`(?i)(?:,\s*)?\b(?:and\s+)?(?:(?:with|invite|inviting|for)\s+|w/\s*)` + addressList)
	inviting = lazyregexp.New(`(?i)(?:,\s*)?(?:\b(?:and\s+)?(?:with|invite|inviting|for)\s+|` +
		`\bw/\s*)?` + addressList)
	withThem = lazyregexp.New(`(?i)\bwith\s+(?:them|her|him|both|everyone|everybody)\b`)
	inMine   = lazyregexp.New(
		`(?i)\b(?:in|into|to|on)\s+(?:my|the|our)\s+(?:google\s+)?(?:calendar|diary|agenda)\b`)
	startVerb = lazyregexp.New(`(?i)^\s*(?:` + strings.ReplaceAll(planning, " ", `\s+`) + `)\b`)
	articles  = lazyregexp.New(`(?i)^(?:(?:remind\s+me|reminder\s+(?:for|to|about|of)|(?:event|entry|` +
		`appointment|reminder)\s*:|i\s+(?:need|want|have)|i['’]ve\s+got|do|have|about|of|me|us|a|an|the|new|my|to|` +
		`for|calendar|(?:event|entry|slot)\s+for)\s+)+`)
	dangling   = lazyregexp.New(`(?i)(?:^|[\s,;]+)(?:on|at|for|with|and|from|to|in|by|of|or|please|starting|as|sharp)$`)
	eventNamed = lazyregexp.New(`^(?i:event|entry|meeting\s+called)\s+(\p{Lu})`)
	blankName  = lazyregexp.New(`(?i)^(?:(?:calendar|event|entry|slot|time)\s*)+$`)
)

// name returns the quotation that names an event, and not its topic.
func (t text) name() (string, bool) {
	at := strings.IndexByte(t.mask, hidden)
	if at > 0 && endsOnTopic.MatchString(t.mask[:at]) {
		return "", false
	}
	return t.quoted()
}

var endsOnTopic = lazyregexp.New(`(?i)\b(?:about|regarding|concerning|on)\W*$`)

// title returns a quotation, the given name, or the rest of the text without verb, times and people.
func title(t, left text) string {
	if q, ok := t.name(); ok {
		return q
	}
	if m := called.FindStringIndex(left.mask); m != nil {
		left = left.blank(0, m[1])
	}
	for _, re := range []*lazyregexp.Regexp{invited, inviting, withThem, inMine, startVerb} {
		for _, m := range re.FindAllStringIndex(left.mask, -1) {
			left = left.blank(m[0], m[1])
		}
	}
	s := strings.ReplaceAll(left.left(), " ,", ",")
	for old := ""; old != s; {
		old = s
		s = strings.Trim(s, " ,;:.!?-–—()")
		s = eventNamed.ReplaceAllString(articles.ReplaceAllString(s+" ", ""), "$1")
		s = dangling.ReplaceAllString(strings.TrimSpace(s), "")
	}
	switch {
	case pronoun.MatchString(s):
		return ""
	case blankName.MatchString(s):
		return "Event"
	}
	return capitalise(s)
}
