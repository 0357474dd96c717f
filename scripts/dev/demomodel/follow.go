package demomodel

import (
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// A followUp changes the previous request: another time, a further guest, the same e-mail to somebody else.
type followUp struct {
	phrases []phrase
	use     func(*follow) ([]*ask, bool) // may decline; then the next one is tried
}

// A follow holds words that refer to earlier requests.
type follow struct {
	*dialogue
	n      int // index of the words in all that the user has said
	slots  map[string]text
	before []*ask
}

const (
	rather = " [(no|nope|not|oh|wait|sorry|yes|yep|sure|great|good|perfect)] [(rather|better|instead|and|but|" +
		"actually|then)] " +
		"[(rather|better|actually|instead|then|also|i meant|i mean|make that)] "
	change  = " (make|move|change|shift|set|reschedule|push|put) "
	it      = " (it|that|this|the event|the meeting|the time) "
	theMail = " (the mail|the email|the e-mail|the message|it|that) "
	too     = " [(too|as well|instead|please)] "
)

// followUps are tried in their order.
var followUps = []followUp{
	{phrases(rather + "[take] [the] {which|first|second|third|last|other|former|latter|1st|2nd|3rd} [(one|event|" +
		"mail|time)]" + too),
		(*follow).chosen},
	{phrases(rather+"[(send|mail|email|write)] [(the mail|the email|the e-mail|the message|it|that)] [to] {who} "+
		"instead", "[(the|that is the|that's the)] wrong address [(it is|it's|use|the right one is)] {who}"),
		(*follow).readdressed},
	{phrases(rather+"[(send|mail|email|write)] [the] same [(mail|message|thing)] [(too|also)] to {who}",
		rather+"(send|mail|email|write)"+theMail+"[(too|also)] to {who}", "[and] also to {who}",
		"and to {who}", "[and] [also] (tell|email|mail|inform|notify) {who} (too|as well|also)"), (*follow).sameTo},
	{phrases(rather + "[do] [the] same [(thing|time|event|meeting|again)] (for|on|at) {what}"), (*follow).repeated},
	{phrases(rather+change+"the (subject|title|name) [of "+theMail+"] [to] {called}", rather+"(call|name|title) "+
		"it {called}",
		rather+"rename (it|that|"+it+") [to] {called}", rather+"with [the] (subject|title) "+
			"{called}"), (*follow).renamed},
	{phrases(rather+"[(make it|it should|let it|change it to)] (say|saying) [that] {body}",
		rather+"tell (them|him|her) [that] {body}", rather+"write {body} instead"), (*follow).reworded},
	{phrases("[and] [also] (add|append|say also) that {body}"), (*follow).extended},
	{phrases(rather+"[(with|add|put)] [(a|in)] (cc|copy) [to] {cc}"+too, rather+"[(with|add|put)] [(a|in)] bcc "+
		"[to] {bcc}"+too),
		(*follow).copied},
	{phrases(rather+"(invite|add|with) {who}", rather+"{to}"+too), (*follow).joined},
	{phrases("[(and|or|then)] (what|how) about {what}", "(and|or) {what}"), (*follow).further},
	{phrases(rather+change+"{what}", rather+"{time}"), (*follow).moved},
}

// follows returns the earlier requests as the user's nth words change them, and whether the words are about them.
func (d *dialogue) follows(n int) ([]*ask, bool) {
	t := read(d.said[n])
	if len(t.raw) > maxFollowUp || isQuestion.MatchString(t.mask) && !furtherQuestion.MatchString(t.mask) {
		return nil, false
	}
	f := &follow{dialogue: d, n: n}
	for _, u := range followUps {
		for _, p := range u.phrases {
			slots, _, ok := p.match(t)
			if !ok {
				continue
			}
			if f.before == nil && n > 0 {
				f.before = d.wishes(n - 1)
			}
			f.slots = slots
			if asks, ok := u.use(f); ok {
				return asks, true
			}
		}
	}
	return nil, false
}

// maxFollowUp is the longest follow-up, in bytes. The new text of an e-mail is the longest one.
const maxFollowUp = 2 << 10

var furtherQuestion = lazyregexp.New(`(?i)^\W*(?:move|reschedule|(?:what|how)\s+about)\b`)

// changed returns an earlier request with a change.
func (f *follow) changed(a *ask, change func(*since)) *ask {
	next := *a
	next.since.times = slices.Clone(a.since.times)
	next.chosen, next.choices = 0, nil
	change(&next.since)
	next.fill()
	return &next
}

// again returns an earlier request with a change, unless that request was executed.
func (f *follow) again(a *ask, change func(*since)) []*ask {
	next := f.changed(a, change)
	if next.question == "" {
		next.question, next.amends = f.standing(), f.n > 0 && f.n <= len(f.came) && waiting.MatchString(f.came[f.n-1])
	}
	return f.instead(a, next)
}

// instead returns a request in place of an earlier one, next to those that were not called because of a question.
func (f *follow) instead(a, next *ask) []*ask {
	at := slices.Index(f.before, a)
	if at < 0 || !slices.ContainsFunc(f.before, func(b *ask) bool { return b.question != "" }) {
		return []*ask{next}
	}
	all := slices.Clone(f.before)
	all[at] = next
	return all
}

// asking returns a question about words that refer to no earlier request, or to several.
func (f *follow) asking(question string, choices ...*ask) ([]*ask, bool) {
	return []*ask{{dialogue: f.dialogue, rule: &f.requests[0], question: question, choices: choices}}, true
}

// places maps words to positions in a list of offers; positions from the end are negative.
var places = map[string]int{"first": 0, "1st": 0, "former": 0, "second": 1, "2nd": 1, "third": 2, "3rd": 2, "last": -1,
	"latter": -1}

// chosen returns the user's choice among the options of the previous question.
func (f *follow) chosen() ([]*ask, bool) {
	at, placed := places[strings.ToLower(f.slots["which"].plain())]
	for _, a := range f.before {
		n := len(a.choices)
		if at < 0 {
			at += n
		}
		if !placed && a.chosen > 0 && n == 2 { // the other one
			at, placed = 2-a.chosen, true
		}
		if placed && 0 <= at && at < n {
			next := *a.choices[at]
			next.choices, next.chosen = a.choices, at+1
			return f.instead(a, &next), true
		}
	}
	return f.asking("I do not know which one you mean. Please say what you want as a whole.")
}

// standing returns the reason why an earlier request cannot be changed: it was executed.
func (f *follow) standing() string {
	n := f.n - 1
	switch {
	case n >= len(f.answers) || !wasDone.MatchString(f.answers[n]) && !onRecord.MatchString(f.came[n]):
		return ""
	case len(f.events()) > 0:
		return "That is done already, and I cannot change an event. " + deleteIt +
			" Then ask for the new one as a whole."
	}
	return "That mail is sent already. Please ask for another one as a whole, or for the same to somebody else."
}

var (
	wasDone  = lazyregexp.New(`\bwas (?:created|sent)\b`)
	waiting  = lazyregexp.New(`the outcome is not known yet`)
	onRecord = lazyregexp.New(`\b(?:Created the event|Sent) “`)
)

// lastOf returns the last request with arguments of a kind.
func lastOf[T any](asks []*ask) (found *ask, args T) {
	for _, a := range asks {
		if v, ok := a.args.(T); ok {
			found, args = a, v
		}
	}
	return found, args
}
