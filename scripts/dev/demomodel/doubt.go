package demomodel

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// The model does exactly the request, or nothing. This file finds the parts of a request that no rule reads, and asks
// about them.

var (
	vague = lazyregexp.New(`(?i)\b(?:yesterday|\S+\s+\S+\s+ago\b|last\s+(?:week|month|year|` + weekdays + `)\b|` +
		`next\s+(?:week|month|year|quarter)|weekend|(?:in|after)\s+\S+\s+(?:months?|years?)|fortnight|ish|` +
		`christmas(?:\s+\S+)?|easter|thanksgiving|halloween|new\s+year\S*|` +
		`(?:end|start|beginning|middle)\s+of\s+(?:the\s+|this\s+|next\s+)?(?:day|week|month|quarter|year)|` +
		`in\s+an?\s+few\s+\S+|some\s*time|later|asap|` +
		`soon|separately|individually|one\s+by\s+one|except|unless|biweekly)\b|` +
		`\b(?:before|after|around|approximately|roughly)\s{4,}`) // of a time that was taken
	condition = lazyregexp.New(`(?i)^\W*(?:if|unless|when|once|after|before|until|as\s+soon\s+as|while|whenever|` +
		`every|each)\b`)
	laterMail = lazyregexp.New(`(?i)^\W*(?:schedule|plan)\s+(?:an?\s+|the\s+)?(?:e-?mail|mail|message)\b`)
	filler    = lazyregexp.New(`(?i)\b(?:please|kindly|thanks|thank|you|hi|hello|hey|ok|okay|yes|now|just|also|` +
		`then|and|so|well|good|morning|afternoon|evening|there|dear|i|want|need|would|like|i'd|to|let's|lets|us|` +
		`can|could|will|but|would|the|a|an|it|at|for|on|in|of|with|by|my|me|from|new|is|instead|rather|actually|` +
		`maybe)\b`)
	aWord = lazyregexp.New(`[\pL\pN]{2,}`)
)

// unread returns the question about words that were not understood.
func unread(words string) string {
	return "I did not understand “" + excerpt(strings.Trim(words, " \t\n,;:.!?-–"), 80) + "”, so I did nothing. " +
		"Please say it in other words, or leave it out."
}

// remains reports whether a text says something beyond courtesies and small words.
func remains(mask string) bool { return aWord.MatchString(filler.ReplaceAllString(mask, " ")) }

// missing returns the question about a day that its month does not have.
func (d day) missing() string {
	if d.month < 1 || d.month > 12 {
		return fmt.Sprintf("A year has no month %d. Which day do you mean?", d.month)
	}
	return fmt.Sprintf("%s %d has no day %d. Which day do you mean?", d.month, d.year, d.day)
}

// doubt returns the question about the times: of a day or an hour that does not exist, a zone that is not known, and of
// more times than an event has.
func (w when) doubt() string {
	for _, d := range w.days {
		if time.Date(d.year, d.month, d.day, 0, 0, 0, 0, time.UTC).Day() != d.day || d.month < 1 || d.month > 12 {
			return d.missing()
		}
	}
	for _, c := range []*clock{w.start, w.end} {
		if c != nil && !c.exists() {
			return fmt.Sprintf("There is no time %d:%02d%s on a clock. Which time do you mean?", c.hour, c.minute,
				c.said)
		}
	}
	switch zone := w.doubtZone(); {
	case w.unclear != "":
		return "Which day or time is “" + w.unclear + "”? Please say it in another way, such as 5 June 2027, or " +
			"for 30 minutes."
	case zone != "":
		return zone
	case w.allDay && w.start != nil:
		return "I read whole days and a time. Which of them do you mean?"
	case w.backwards():
		return "That ends before it begins. Which times do you mean?"
	case len(w.starts) > 1, len(w.days) > 2, len(w.days) == 2 && w.end == nil && !w.allDay:
		return "I read more than one time. Please give one day and one time."
	}
	return ""
}

// backwards reports whether an event ends at an earlier time than it begins, and not in the night after it.
func (w when) backwards() bool {
	const night = 8 * 60
	return w.start != nil && w.end != nil && len(w.days) < 2 && w.end.minutes() <= w.start.minutes() &&
		w.start.minutes()-w.end.minutes() < night
}

// exists reports whether a day has that time; 24:00 exists as the end of a day.
func (c clock) exists() bool {
	return c.minute < 60 && (c.hour < 24 || c.hour == 24 && c.minute == 0) && !c.overHalf
}

// doubtEvent returns the question about an event whose times are known.
func (a *ask) doubtEvent(w when) string {
	left := w.leftover
	if m := called.FindStringIndex(left.mask); m != nil {
		left = left.slice(0, m[0])
	}
	if word, day := misspelt(left); word != "" {
		return "I did not understand “" + word + "”, so I did nothing. Do you mean " + day + "? Please say it again."
	}
	if beyond := beyondEvent(left); beyond != "" {
		return beyond
	}
	switch words := vague.FindString(left.mask); {
	case laterMail.MatchString(a.text.mask):
		return sendsAtOnce
	case words != "":
		return unread(words)
	case corrected.MatchString(a.text.mask):
		return unread(corrected.FindStringSubmatch(a.text.mask)[1])
	case untold.MatchString(left.mask):
		return unread(oneSpace(untold.FindString(left.mask)))
	case notThem.MatchString(a.text.mask):
		return unread(notThem.FindString(a.text.mask))
	case bookable.MatchString(a.text.mask):
		return "I can book nothing; I can only put an event into the calendar. Please say that if it is what you want."
	}
	if _, quoted := a.text.name(); !quoted {
		return cmp.Or(furtherWish(left), a.doubtLead())
	}
	left, _ = strangers(left)
	left = left.without(inMine).without(startVerb).without(someNoun)
	if rest := left.unquoted(); remains(rest) {
		return unread(articles.ReplaceAllString(rest+" ", ""))
	}
	return a.doubtLead()
}

var someNoun = lazyregexp.New(`(?i)\b(?:` + nouns + `|entry|slot|time|title|titled|long|starting)\b`)

// doubtLead returns the question about the words before a request. Neither a condition nor an address among them may be
// ignored.
func (a *ask) doubtLead() string {
	lead := a.slots["lead"]
	said := announcing.ReplaceAllString(strings.TrimSpace(lead.mask), "")
	if condition.MatchString(lead.mask) || len(lead.addresses()) > 0 || wondering.MatchString(lead.mask) ||
		strings.HasSuffix(said, ":") && remains(said) {
		return unread(lead.raw)
	}
	return ""
}

var (
	// announcing matches words that announce a request and add nothing to it.
	announcing = lazyregexp.New(`(?i)\b(?:(?:do|here(?:\s+is|['’]s)|one\s+thing|my|your|next|first|second|last)\s+)*` +
		`(?:this|following|thing|task|to-?do|request|job|wish|step(?:\s+\d+)?|example)s?\s*(?:for\s+you\s*)?:$`)
	wondering = lazyregexp.New(`(?i)\bshould\s+(?:i|we)\b`)
)

var bookable = lazyregexp.New(`(?i)^book\s+(?:me\s+|us\s+)?(?:an?|the)\s+(?:flight|hotel|taxi|cab|train|` +
	`tickets?|car)\b`)

// booking matches a request for something that others sell or keep. The model can only create an event for it.
var booking = lazyregexp.New(`(?i)^` + courtesy + `(?:(?:reserve|order|buy|purchase|rent|hire|get\s+(?:me|us))\s|` +
	`book\s+(?:\S+\s+){0,4}?(?:tables?|seats?|rooms?|court|restaurant|cinema|theat(?:re|er)|show|tour|massage|haircut|` +
	`hairdresser|gym|class|appointment|doctor|dentist|venue|hall|desk|place)\b)`)

// untold matches an order not to tell somebody about an event.
var untold = lazyregexp.New(`(?i)\b(?:do\s+not|don['’]?t|never|without)\s+(?:notify|notifying|invite|inviting|tell|telling|` +
	`inform|informing|mail|mailing|e-?mail|e-?mailing|send|sending)\b.*`)

// doing matches the verb of a request that is not part of an event's name.
var doing = lazyregexp.New(`(?i)(?:\band|&|[,;.])\s+(?:please\s+|then\s+|also\s+)*(?:` + planning + `|email|` +
	`e-mail|mail|send|tell|let|ask|` +
	`write|buy|order|pay|bring|bake|cook|clean|fix|find|search|look|delete|cancel|print|play|open|close|reply|` +
	`forward|` +
	`translate|summari[sz]e)\s+\S`)

// furtherWish returns the question about a further request among the words that would name an event.
func furtherWish(left text) string {
	m := doing.FindStringIndex(left.mask)
	about := topical.FindStringIndex(left.mask)
	if m == nil || about != nil && about[0] < m[0] {
		return ""
	}
	return unread(left.from(m[0]).left())
}
