package demomodel

import (
	"fmt"
	"slices"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// asks returns the requests of the newest prompt, completed from earlier requests.
func (d *dialogue) asks() []*ask { return d.wishes(len(d.said) - 1) }

// wishes returns the requests in the user's words up to the last one: new requests, changes to earlier requests, or
// earlier requests completed with missing details.
func (d *dialogue) wishes(last int) []*ask {
	if last < 0 {
		return nil
	}
	if asks, known := d.known[last]; known {
		return asks
	}
	asks, ok := d.follows(last)
	if !ok {
		asks = d.understand(d.said[last])
	}
	if !ok && last > 0 && (len(asks) == 0 || asks[0].question != "") {
		if completed, ok := completed(d.wishes(last-1), read(d.said[last])); ok {
			asks = completed
		}
	}
	d.known[last] = asks
	return asks
}

// completed fills the missing detail of the first incomplete request, and reports whether the words contain it.
func completed(asks []*ask, said text) ([]*ask, bool) {
	at := slices.IndexFunc(asks, func(a *ask) bool { return a.question != "" && a.args != nil })
	if at < 0 || len(said.raw) > maxPrompt {
		return nil, false
	}
	next := *asks[at]
	next.answer(said)
	if !next.fill() || next.question == asks[at].question {
		return nil, false
	}
	asks = slices.Clone(asks)
	asks[at] = &next
	return asks, true
}

// answer treats the words as the answer to the question about the request.
func (a *ask) answer(said text) {
	m, isMail := a.args.(*mailArgs)
	switch to := said.addresses(); {
	case isMail && len(m.To) == 0:
		a.since.people = to
		if m.Body == "" && startsSo.MatchString(said.mask) {
			a.since.body = a.saidTo(said)
		}
	case isMail && m.Body == "":
		a.since.body = said.raw
		if m := saidThat.FindStringSubmatch(said.raw); m != nil {
			a.since.body = m[1]
		}
	default:
		a.reply = said
	}
}

// saidTo returns the text of an e-mail from words that begin with the recipients.
func (a *ask) saidTo(said text) string {
	if whole := a.request(read("email "+said.raw), &ask{}); whole != nil {
		if m, is := whole.args.(*mailArgs); is {
			return m.Body
		}
	}
	return ""
}

// saidThat matches an answer that says “that” before the text.
var saidThat = lazyregexp.New(`(?is)^\s*(?:say(?:ing)?\s+)?that\s+((?:the|i|we|he|she|it|they|you|my|our)\b.*)$`)

// understand returns the requests of a prompt.
func (d *dialogue) understand(prompt string) (asks []*ask) {
	if len(prompt) > maxPrompt {
		return nil
	}
	before := &ask{}
	var other text
	clauses := d.split(read(prompt))
	for _, t := range clauses {
		a := d.request(t, before)
		if a != nil {
			asks = append(asks, a)
			before = a
			continue
		}
		before = &ask{text: t}
		if remains(t.mask) && other.raw == "" {
			other = t
		}
	}
	if len(asks) > 0 && len(clauses) > maxClauses {
		return []*ask{{dialogue: d, rule: asks[0].rule, question: fmt.Sprintf("I can take at most %d requests at "+
			"once, so I did nothing. Please send fewer.", maxClauses)}}
	}
	if len(asks) > 0 && other.raw != "" && !greeting.MatchString(other.mask) {
		asks = append(asks, &ask{dialogue: d, rule: asks[0].rule, question: unread(other.raw)})
	}
	return asks
}

// request returns the request of a clause, by the rule that takes it from the earliest word.
func (d *dialogue) request(t text, before *ask) (found *ask) {
	question := isQuestion.MatchString(t.mask)
	for i := range d.requests {
		r := &d.requests[i]
		if question && !r.questions || found != nil && r.fallback {
			continue
		}
		a, ok := r.match(d, t)
		if ok && negated.MatchString(a.slots["lead"].mask) {
			return nil
		}
		if !ok || found != nil && len(a.text.raw) <= len(found.text.raw) {
			continue
		}
		if a.before = before; a.fill() {
			found = a
		}
	}
	return found
}

// maxClauses limits the number of requests in a prompt. maxVerbs limits the number of places where a request can begin.
const (
	maxClauses = 16
	maxVerbs   = 64
)

var (
	further   = lazyregexp.New(`(?i)(?:[.;!?,&]|\b(?:and|then|also|plus|please))\s+|\n\s*`)
	connector = lazyregexp.New(`(?i)[\s,;.&]*(?:\b(?:and|then|also|plus|please)\b[\s,]*)*$`)
	negated   = lazyregexp.New(`(?i)\b(?:don['’]?t|do\s+not|never|without|not\s+to)\s+(?:\w+\s+)?$`)
	greeting  = lazyregexp.New(`(?i)^\W*(?:hi|hello|hey|good\s+\w+|thanks|thank\s+you|` +
		`dear)\b[^.!?,]{0,30}[.!?,\s]*$`)
	isQuestion = lazyregexp.New(`(?i)^\W*(?:what|who|whom|whose|when|where|why|how|which|is|are|am|was|were|do|` +
		`does|did|have|has|should|any|anything|show|list|read|search|find|cancel|delete|remove|move|reschedule|` +
		`reply|forward)\b`)
)

// split splits a prompt where a further request begins.
func (d *dialogue) split(t text) (clauses []text) {
	start := 0
	for _, m := range further.FindAllStringIndex(t.mask, maxVerbs) {
		end := m[1] - len(connector.FindString(t.mask[max(start, m[1]-40):m[1]]))
		if end <= start || len(clauses) > maxClauses {
			continue
		}
		before, next := t.slice(start, end), t.from(m[1]).near()
		if d.opens(before, next) || d.lists(before, next) {
			clauses = append(clauses, before)
			start = m[1]
		}
	}
	return append(clauses, t.from(start))
}

// opens reports whether a request that may follow the previous one begins here. It may be incomplete.
func (d *dialogue) opens(before, t text) bool {
	return slices.ContainsFunc(d.requests, func(r rule) bool {
		if !r.joins || r.goesOn && !d.whole(before) {
			return false
		}
		a, ok := r.match(d, t)
		return ok && a.slots["lead"].raw == "" && a.fill() && (a.question == "" || a.begun(before))
	})
}

// whole reports whether a clause is a complete request.
func (d *dialogue) whole(clause text) bool {
	a := d.request(clause, &ask{})
	return a != nil && a.question == ""
}

// begun reports whether an incomplete request is a request of its own, and not words of the previous one.
func (a *ask) begun(before text) bool {
	switch {
	case a.rule.tool == eventTool:
		return calendarWord.MatchString(a.text.mask) || findWhen(a.text, a.now).timed()
	case a.slots["them"].raw != "": // an e-mail is then about somebody else
		return !mails.MatchString(before.mask)
	}
	said := a.slots["body"].raw + a.slots["subject"].raw
	return a.slots["to"].raw != "" || a.slots["whom"].raw != "" && said != ""
}

var mails = lazyregexp.New(`(?i)^` + courtesy + `(?:email|e-mail|mail|message|tell|inform|notify|write|send|` +
	`let|ask|remind)\b`)
