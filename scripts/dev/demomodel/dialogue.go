package demomodel

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// maxPrompt is the longest prompt that is parsed, in bytes. A longer one is not parsed at all: a truncated mail would
// be worse than none.
const maxPrompt = 8 << 10

// A dialogue is one request to the model, taken apart.
type dialogue struct {
	fakegemini.Request
	rulebook
	now     time.Time
	tools   []*offered // that may be called
	said    []string   // by the user, oldest first
	answers []string   // in words, to what was said
	came    []string   // what the server says became of it
	done    []step     // since the user's last words
	state   state      // of the page that the user has open
}

func newDialogue(r fakegemini.Request, rules rulebook, now time.Time) *dialogue {
	d := &dialogue{Request: r, rulebook: rules, now: now, done: stepsOf(r.Contents), state: readState(r)}
	for _, declared := range r.Tools {
		if len(r.Allowed) == 0 || slices.Contains(r.Allowed, declared.Name) {
			d.tools = append(d.tools, newOffered(declared))
		}
	}
	for _, c := range r.Contents {
		for _, p := range c.Parts {
			switch {
			case p.Text == nil:
			case c.Role == "user" && servers.MatchString(*p.Text):
				d.noted(*p.Text)
			case c.Role == "user":
				d.said, d.answers, d.came = append(d.said, *p.Text), append(d.answers, ""), append(d.came, "")
			case len(d.said) > 0:
				d.answers[len(d.said)-1] += *p.Text
			}
		}
	}
	return d
}

// servers matches what the server has put into the conversation in the user's role.
var servers = regexp.MustCompile(`^(?:\[record [a-z0-9]+\] |For your information, from the record and not from the user: )`)

// noted keeps what the server says became of the newest words.
func (d *dialogue) noted(record string) {
	if last := len(d.said) - 1; last >= 0 {
		d.came[last] += record
	}
}

// last returns the user's last words.
func (d *dialogue) last() string {
	if len(d.said) == 0 {
		return ""
	}
	return d.said[len(d.said)-1]
}

// answer returns what follows from the user's last words and what was done about them since.
func (d *dialogue) answer() fakegemini.Turn {
	prompt := read(d.last())
	if len(d.last()) > maxPrompt {
		return words("That is longer than I can read, so I did nothing about it. " + d.abilities())
	}
	if len(d.done) == 0 && foreign(prompt) {
		return words(englishOnly)
	}
	if len(d.done) == 0 && d.mixed(prompt) {
		return words("That is more than one thing, and I use a page and write or plan only one after the other. " +
			"Nothing was done; please say them one by one.")
	}
	if tool, _ := d.named(prompt); tool == nil {
		if turn, ok := d.first(d.tasks, prompt); ok {
			return turn
		}
	}
	if len(d.done) > 0 {
		return words(d.report())
	}
	if asks := d.asks(); len(asks) > 0 {
		return d.call(asks)
	}
	if said := d.yes(); said != "" {
		return words(said)
	}
	if turn, ok := d.first(d.talk, prompt); ok {
		return turn
	}
	return words(join("You said: “"+excerpt(prompt.raw, 120)+"”. I did nothing about it.", d.abilities()))
}

// mixed reports whether a prompt is for a task of several calls and for mail or the calendar too.
func (d *dialogue) mixed(prompt text) bool {
	if len(d.split(prompt)) < 2 {
		return false
	}
	if _, ok := d.first(d.tasks, prompt); !ok {
		return false
	}
	asks, _ := d.understand(prompt.raw, "")
	return slices.ContainsFunc(asks, func(a *ask) bool {
		return (a.rule.tool == mailTool || a.rule.tool == eventTool) && d.tool(a.rule.tool) != nil
	})
}

// first returns the turn of the first rule that takes the text and has one.
func (d *dialogue) first(rules []rule, t text) (fakegemini.Turn, bool) {
	for i := range rules {
		if a, ok := rules[i].match(d, t); ok {
			if turn, ok := rules[i].next(a); ok {
				return turn, true
			}
		}
	}
	return fakegemini.Turn{}, false
}

// asks returns the requests of the newest prompt, or those of the one before with what was missing in them.
func (d *dialogue) asks() []*ask { return d.wishes(len(d.said) - 1) }

// wishes returns the requests of the user's words up to the last one, with what they take from those before.
func (d *dialogue) wishes(last int) []*ask {
	if last < 0 {
		return nil
	}
	if asks, ok := d.follows(last); ok {
		return asks
	}
	asks, _ := d.understand(d.said[last], "")
	if last == 0 || len(asks) > 0 && asks[0].question == "" {
		return asks
	}
	if completed, ok := d.understand(d.said[last-1], d.said[last]); ok {
		return completed
	}
	return asks
}

// understand returns the requests of a prompt. The reply is used once, where something is missing; used reports whether
// it was, and completed what was missing.
func (d *dialogue) understand(prompt, reply string) (asks []*ask, used bool) {
	if len(prompt) > maxPrompt || len(reply) > maxPrompt {
		return nil, false
	}
	before := &ask{}
	var other text
	for _, t := range d.split(read(prompt)) {
		a := d.request(t, before)
		if a != nil && a.question != "" && reply != "" && !used {
			missing := a.question
			a.reply = read(reply)
			used = a.fill() && a.question != missing
		}
		if a != nil {
			asks = append(asks, a)
			before = a
		} else {
			before = &ask{text: t}
			if remains(t.mask) && other.raw == "" {
				other = t
			}
		}
	}
	if len(asks) > 0 && other.raw != "" && !greeting.MatchString(other.mask) {
		asks = append(asks, &ask{dialogue: d, rule: asks[0].rule, question: unread(other.raw)})
	}
	return asks, used
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

// call returns the calls of the requests, unless something is missing in one of them.
func (d *dialogue) call(asks []*ask) fakegemini.Turn {
	var turn fakegemini.Turn
	var lacking []string
	for _, a := range asks {
		switch c := a.made(); {
		case a.question != "":
			lacking = append(lacking, a.question)
		case d.tool(c.Name) == nil:
			lacking = append(lacking, "I have no tool called "+c.Name+" here.")
		default:
			turn.Calls = append(turn.Calls, c)
		}
	}
	if len(lacking) > 0 {
		return words(strings.Join(lacking, " "))
	}
	return turn
}

// permitted keeps an answer to the request's function-calling mode.
func (d *dialogue) permitted(t fakegemini.Turn) fakegemini.Turn {
	const none = "I may call no tools in this answer, so "
	switch {
	case d.NoTools && len(t.Calls) > 0 && len(d.done) > 0:
		return words(join(d.failures(), none+"I stopped here. Please ask again."))
	case d.NoTools && len(t.Calls) > 0:
		return words("I understood what you want. " + none + "nothing was done. Please ask again.")
	case d.Mode == "ANY" && len(t.Calls) == 0 && len(d.tools) > 0:
		return fakegemini.Turn{Calls: []fakegemini.Call{d.forced()}}
	}
	return t
}

// maxClauses bounds the requests of a prompt that are told apart, and maxVerbs the places where one may begin.
const (
	maxClauses = 8
	maxVerbs   = 64
)

var (
	further    = regexp.MustCompile(`(?i)(?:[.;!?,]|\b(?:and|then|also|plus|please))\s+|\n\s*`)
	connector  = regexp.MustCompile(`(?i)[\s,;.]*(?:\b(?:and|then|also|plus|please)\b[\s,]*)*$`)
	negated    = regexp.MustCompile(`(?i)\b(?:don['’]?t|do\s+not|never|without|not\s+to)\s+(?:\w+\s+)?$`)
	greeting   = regexp.MustCompile(`(?i)^\W*(?:hi|hello|hey|good\s+\w+|thanks|thank\s+you|dear)\b[^.!?,]{0,30}[.!?,\s]*$`)
	isQuestion = regexp.MustCompile(`(?i)^\W*(?:what|who|whom|whose|when|where|why|how|which|is|are|am|was|were|do|` +
		`does|did|have|has|should|any|anything|show|list|read|search|find|cancel|delete|remove|move|reschedule|reply|forward)\b`)
)

// split splits a prompt where a further request begins.
func (d *dialogue) split(t text) (clauses []text) {
	start := 0
	for _, m := range further.FindAllStringIndex(t.mask, maxVerbs) {
		end := m[1] - len(connector.FindString(t.mask[max(start, m[1]-40):m[1]]))
		if end > start && len(clauses) < maxClauses &&
			(d.opens(t.from(m[1]).near()) || d.lists(t.slice(start, end), t.from(m[1]).near())) {
			clauses = append(clauses, t.slice(start, end))
			start = m[1]
		}
	}
	return append(clauses, t.from(start))
}

// opens reports whether a request that may follow another one begins here, though something may be missing in it.
func (d *dialogue) opens(t text) bool {
	return slices.ContainsFunc(d.requests, func(r rule) bool {
		if !r.joins {
			return false
		}
		a, ok := r.match(d, t)
		return ok && a.slots["lead"].raw == "" && a.fill() &&
			(a.question == "" || a.slots["to"].raw != "" || calendarWord.MatchString(t.mask) ||
				a.rule.tool == eventTool && findWhen(t, d.now).timed())
	})
}
