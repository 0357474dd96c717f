package demomodel

import (
	"regexp"
	"slices"
	"strings"
	"time"
)

// What a user says of the request before: a later time, a further guest, the same to somebody else.
var (
	sameTo = regexp.MustCompile(`(?i)^` + courtesy + `(?:(?:send|mail|email|write)\s+)?(?:the\s+same(?:\s+(?:mail|message|` +
		`thing))?|it|that)\s+(?:also\s+|too\s+)?to\s+(` + addressList + `)[\s.!?]*(?:too|as\s+well)?[\s.!?]*$`)
	sameToSome = regexp.MustCompile(`(?i)^` + courtesy + `(?:send\s+)?the\s+same(?:\s+(?:mail|message))?\s+to\s+(\S.*)$`)
	makeIt     = regexp.MustCompile(`(?i)^` + courtesy + `(?:no,?\s+|actually,?\s+)?(?:make|move|change|shift|set|` +
		`reschedule)\s+(?:it|that|this|the\s+(?:event|meeting|time))\b`)
	alsoInvite = regexp.MustCompile(`(?i)^` + courtesy + `(?:invite|add)\s+(\S.*?)(?:\s+(?:to\s+(?:it|that)|too|as\s+well))?` +
		`[\s.!?]*$`)
	andThen   = regexp.MustCompile(`(?i)^\W*(?:and\s+|or\s+|then\s+)*(?:(?:what|how)\s+about\s+|and\s+|or\s+)(\S.*)$`)
	bareTo    = regexp.MustCompile(`(?i)^\s*to\b`)
	alsoThere = regexp.MustCompile(`(?i)^\W*(?:also|and|please\s+also)\b|\b(?:too|as\s+well|to\s+(?:it|that))[\s.!?]*$`)
	beside    = regexp.MustCompile(`(?i)\b(?:too|as\s+well|also)\b|` + oneAddress)
	agreed    = regexp.MustCompile(`(?i)^\W*(?:yes|yep|yeah|sure|ok|okay|do\s+it|go\s+ahead|please\s+do)(?:,?\s+please)?[\s.!]*$`)
	wasDone   = regexp.MustCompile(`\bwas (?:created|sent)\b`)
	onRecord  = regexp.MustCompile(`\b(?:Created the event|Sent) “`)
)

// follows returns what the user's nth words make of the request before them, and whether they are about it.
func (d *dialogue) follows(n int) ([]*ask, bool) {
	t := read(d.said[n])
	if !makeIt.MatchString(t.mask) && !sameToSome.MatchString(t.mask) && !sameTo.MatchString(t.mask) &&
		!alsoInvite.MatchString(t.mask) && !andThen.MatchString(t.mask) {
		return nil, false
	}
	before := d.wishes(n - 1)
	switch {
	case andThen.MatchString(t.mask):
		return d.further(t, before)
	case sameTo.MatchString(t.mask), sameToSome.MatchString(t.mask):
		return d.again(t, before)
	case makeIt.MatchString(t.mask):
		return d.moved(n, t, before)
	}
	return d.joined(n, t, before)
}

// further returns the question of before for another time, or about somebody else.
func (d *dialogue) further(t text, before []*ask) ([]*ask, bool) {
	m := andThen.FindStringSubmatchIndex(t.mask)
	rest := t.raw[m[2]:m[3]]
	if len(before) == 0 {
		return nil, false
	}
	var asks []*ask
	switch p := before[len(before)-1].args.(type) {
	case *periodArgs:
		w := findWhen(read(rest), d.now)
		if w.start != nil && len(w.days) == 0 && p.From != "" {
			rest += " on " + p.From[:len(time.DateOnly)]
		}
		if w.some() || someWeek.MatchString(rest) || withWhom.MatchString(rest) {
			asks, _ = d.understand("what is on "+rest, "")
		}
	case *findArgs:
		if sender.MatchString(rest) || topics.MatchString(rest) {
			asks, _ = d.understand("any mail "+rest, "")
		}
	}
	return asks, len(asks) > 0
}

// asked returns the user's last question, without those that go on from it.
func (d *dialogue) asked() string {
	n := len(d.said) - 1
	for n > 0 && andThen.MatchString(d.said[n]) {
		n--
	}
	if n < 0 {
		return ""
	}
	return d.said[n]
}

// again returns the mail of before, to others.
func (d *dialogue) again(t text, before []*ask) ([]*ask, bool) {
	a, m := lastOf[*mailArgs](before)
	if a == nil && d.tool(mailTool) != nil {
		return d.unclear("I know of no mail before that. Please say the whole mail.")
	}
	if a == nil {
		return nil, false
	}
	next := *a
	other := *m
	other.To, other.Cc, other.Bcc = t.addresses(), nil, nil
	next.args, next.question = &other, ""
	to := sameToSome.FindStringSubmatchIndex(t.mask)
	switch {
	case len(other.To) == 0:
		next.question = unknownPeople
	case to != nil && remains(beside.ReplaceAllString(t.mask[to[2]:to[3]], "")):
		next.question = unread(t.slice(to[2], to[3]).raw)
	}
	return []*ask{&next}, true
}

const unknownPeople = "I know no names. Please say it again with an e-mail address."

// moved returns the event of before at another time.
func (d *dialogue) moved(n int, t text, before []*ask) ([]*ask, bool) {
	a, e := lastOf[*eventArgs](before)
	rest := t.from(len(makeIt.FindString(t.mask)))
	w := findWhen(rest, d.now)
	if !w.some() { // “make it 10”
		w = findWhen(read("at "+strings.TrimSpace(bareTo.ReplaceAllString(rest.raw, ""))), d.now)
	}
	if a == nil && w.some() && d.tool(eventTool) != nil {
		return d.unclear("I do not know which event you mean: none was asked for just before. Please say " +
			"the whole event.")
	}
	if a == nil || !w.some() {
		return nil, false
	}
	next := *a
	later := *e
	next.args = &later
	next.question = w.doubt()
	if next.question == "" && remains(w.leftover.mask) {
		next.question = unread(w.leftover.left())
	}
	if next.question == "" {
		later.move(w, d.now)
		next.question = d.standing(n - 1)
	}
	return []*ask{&next}, true
}

// unclear returns a question about words that go on from nothing.
func (d *dialogue) unclear(question string) ([]*ask, bool) {
	return []*ask{{dialogue: d, rule: &d.requests[0], question: question}}, true
}

// move sets the times that are given, and keeps day and length where they are not.
func (e *eventArgs) move(w when, now time.Time) {
	start, err := time.Parse("2006-01-02T15:04:05", e.Start)
	if err != nil { // a whole day, or an offset
		w.fill(e, now)
		return
	}
	if len(w.days) == 0 {
		w.days = []day{dayOf(start)}
	}
	if w.start == nil {
		w.start = &clock{hour: start.Hour(), minute: start.Minute(), exact: true}
	}
	if end, err := time.Parse("2006-01-02T15:04:05", e.End); err == nil && w.length == 0 {
		w.length = end.Sub(start)
	}
	if w.zone == "" {
		w.zone = e.TimeZone
	}
	w.fill(e, now)
}

// joined returns the event of before with further guests.
func (d *dialogue) joined(n int, t text, before []*ask) ([]*ask, bool) {
	a, e := lastOf[*eventArgs](before)
	if a == nil || len(t.addresses()) == 0 && !alsoThere.MatchString(t.mask) || findWhen(t, d.now).some() {
		return nil, false
	}
	next := *a
	more := *e
	more.Attendees = append(slices.Clone(e.Attendees), t.addresses()...)
	next.args = &more
	switch {
	case len(t.addresses()) == 0:
		next.question = unknownPeople
	case next.question == "":
		next.question = d.standing(n - 1)
	}
	return []*ask{&next}, true
}

// standing says why the event of the nth words cannot become another one, where it was made.
func (d *dialogue) standing(n int) string {
	if n < len(d.answers) && (wasDone.MatchString(d.answers[n]) || onRecord.MatchString(d.came[n])) {
		return "That is done already, and I cannot change an event. Please delete it in your calendar, and ask for " +
			"the new one as a whole."
	}
	return ""
}

// lastOf returns the last request with arguments of a kind.
func lastOf[T any](asks []*ask) (found *ask, args T) {
	for _, a := range asks {
		if v, ok := a.args.(T); ok {
			found, args = a, v
		}
	}
	return found, args
}

// yes answers a yes to no question: that of a card is given on the card.
func (d *dialogue) yes() string {
	n := len(d.said) - 1
	if n > 0 && agreed.MatchString(d.said[n]) && !strings.HasSuffix(d.answerTo(n-1), "?") {
		return "A card is approved on the card itself, with its button; my words approve nothing. I have nothing " +
			"else open that waits for a yes."
	}
	return ""
}

// answerTo returns the words that answered the nth prompt; none where it was answered by a call alone.
func (d *dialogue) answerTo(n int) string {
	if n < len(d.answers) {
		return strings.TrimSpace(d.answers[n])
	}
	return ""
}
