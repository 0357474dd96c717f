package demomodel

import (
	"regexp"
	"strings"
	"time"
)

// kind is the kind of a clause.
type kind int

const (
	noClause kind = iota
	mailClause
	eventClause
)

const (
	mailVerb  = `e-?mail|mail|send|write|message|tell|inform|notify|remind|ask|draft|compose|let`
	eventVerb = `schedule|create|put|add|book|plan|arrange|organi[sz]e|enter|block|set\s+up|make|invite`
	eventNoun = `calendar|diary|agenda|meeting|event|appointment|call|lunch|dinner|breakfast|coffee|standup|stand-up|demo|reminder|session|workshop|review|interview|party`
)

var (
	verb = regexp.MustCompile(`(?i)\b(?:(` + mailVerb + `)|(` + eventVerb + `))\b`)
	// connected matches what precedes the verb of a further request.
	connected = regexp.MustCompile(`(?i)(?:[.;!?,\n]|\b(?:and|then|also|plus|please))\s*$`)
	connector = regexp.MustCompile(`(?i)[\s,;.]*(?:\b(?:and|then|also|plus|please)\b[\s,]*)*$`)

	// A request for a mail: the address follows the verb, perhaps after a word for a mail.
	mailOutright = regexp.MustCompile(`(?i)^(?:(?:` + mailVerb + `)\s+(?:to\s+)?<?` + addressLike +
		`|(?:send|write|draft|compose)\s+(?:[^\s@]+\s+){0,3}(?:e-?mail|mail|message|note|copy|it|this)\b)`)
	// A request for an event: a word for it near the verb, or a verb that means nothing else and a time.
	eventOutright = regexp.MustCompile(`(?i)^(?:(?:` + eventVerb + `)\s+(?:\S+\s+){0,5}?\S*\b(?:` + eventNoun +
		`)\b|invite\s+<?` + addressLike + `)`)
	schedules = regexp.MustCompile(`(?i)^(?:schedule|book|plan|arrange|organi[sz]e)\b`)

	myCalendar = regexp.MustCompile(`(?i)\b(?:calendar|diary|agenda)\b`)

	aMail    = regexp.MustCompile(`(?i)\b(?:e-?mail|mail|message)\b`)
	emailing = regexp.MustCompile(`(?i)^(?:e-?mail|mail)\b`)

	// Questions, prohibitions, and requests that the model does not serve.
	question = regexp.MustCompile(
		`(?i)^\W*(?:what|who|whom|whose|when|where|why|how|which|is|are|am|was|were|do|does|did|have|has|should|show|list|read|search|find|cancel|delete|remove|move|reschedule|reply|forward)\b`)
	negated = regexp.MustCompile(`(?i)\b(?:don['’]?t|do\s+not|never|without|not\s+to)\s+(?:\w+\s+)?$`)
	told    = regexp.MustCompile(`(?i)^\W*(?:i|we|you|he|she|it|they|my|this|that|there)\b`)
)

var courteous = regexp.MustCompile(`(?i)^\W*(?:can|could|would|will)\s+you\b`)

// unasked drops the question mark of "could you …?", which is not part of the request.
func (t text) unasked() text {
	if courteous.MatchString(t.mask) && strings.HasSuffix(t.mask, "?") {
		return t.slice(0, len(t.mask)-1)
	}
	return t
}

// The bounds of a prompt: the number of requests that are separated, and of verbs that are examined.
const (
	maxClauses = 8
	maxVerbs   = 64
)

// split splits a prompt where a further request begins.
func split(t text) []text {
	var out []text
	start := 0
	for _, m := range verb.FindAllStringIndex(t.mask, maxVerbs) {
		if m[0] == 0 || len(out) == maxClauses || !connected.MatchString(tail(t.mask[:m[0]])) ||
			!t.from(m[0]).near().outright() {
			continue
		}
		end := m[0] - len(connector.FindString(tail(t.mask[start:m[0]])))
		if end > start {
			out = append(out, t.slice(start, end))
		}
		start = m[0]
	}
	return append(out, t.from(start))
}

// outright reports whether the text begins with an unambiguous request.
func (t text) outright() bool {
	switch {
	case mailOutright.MatchString(t.mask):
		return true
	case eventOutright.MatchString(t.mask):
		return myCalendar.MatchString(t.mask) || hasTime(t)
	}
	return schedules.MatchString(t.mask) && hasTime(t)
}

// kind returns the kind of a clause, and the position of its verb.
func (t text) kind() (kind, int) {
	if question.MatchString(t.mask) {
		return noClause, 0
	}
	for _, m := range verb.FindAllStringSubmatchIndex(t.mask, maxVerbs) {
		rest := t.from(m[0]).near()
		switch {
		case negated.MatchString(tail(t.mask[:m[0]])):
			return noClause, 0
		case m[2] >= 0 && mailOutright.MatchString(rest.mask), m[2] >= 0 && emailing.MatchString(rest.mask) &&
			m[0] == firstWord(t.mask):
			return mailClause, m[0]
		case m[4] >= 0 && (eventOutright.MatchString(rest.mask) || hasTime(rest)):
			return eventClause, m[0]
		case m[2] >= 0 && len(rest.addresses()) > 0 && !hasDay(rest):
			return mailClause, m[0]
		}
	}
	if t.near().bareEvent() {
		return eventClause, 0
	}
	return noClause, 0
}

// bareEvent reports whether the text is the name of an event with its day and time, and no verb.
func (t text) bareEvent() bool {
	if told.MatchString(t.mask) || aMail.MatchString(t.mask) || !hasDay(t) || !hasTime(t) {
		return false
	}
	return title(t, findWhen(t, time.Unix(0, 0).UTC()).leftover) != ""
}

var politeness = regexp.MustCompile(
	`(?i)^\W*(?:(?:please|kindly|hi|hello|hey|ok|okay|now|can|could|would|will|you|i|want|need|to|['’]d|like|a|an|new)\b\W*)*`)

// firstWord returns where a request begins after words of courtesy.
func firstWord(s string) int { return len(politeness.FindString(s)) }
