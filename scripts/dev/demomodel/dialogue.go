package demomodel

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/engine/toolbox"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// maxPrompt is the longest prompt that is parsed, in bytes. A longer one is not parsed at all: a truncated e-mail would
// be worse than none.
const maxPrompt = 8 << 10

// A dialogue is one parsed request to the model.
type dialogue struct {
	fakegemini.Request
	rulebook
	now     time.Time
	tools   []*offered     // tools that may be called
	said    []string       // the user's texts, oldest first
	answers []string       // the texts of the answers to the user
	came    []string       // the server's reports about the outcomes
	files   []string       // names of the newest files that the user has attached
	done    []step         // steps since the user's last text
	state   state          // the state of the user's open page
	known   map[int][]*ask // the requests that were found in the user's texts

	mayTakeBack bool    // whether a server tool can revoke waiting proposals
	waits       []waits // earlier proposals that may still wait, oldest first
}

func newDialogue(r fakegemini.Request, rules rulebook, now time.Time) *dialogue {
	d := &dialogue{Request: r, rulebook: rules, now: now, done: stepsOf(r.Contents), state: readState(r),
		known: map[int][]*ask{}}
	for _, declared := range r.Tools {
		switch {
		case len(r.Allowed) > 0 && !slices.Contains(r.Allowed, declared.Name):
		case declared.Name == toolbox.TakeBackTool:
			d.mayTakeBack = true
		default:
			d.tools = append(d.tools, newOffered(declared))
		}
	}
	filed := -1 // number of texts before the newest file
	for _, c := range r.Contents {
		for _, p := range c.Parts {
			if p.Text == nil {
				continue
			}
			if name, ok := attachedIn(*p.Text); ok && c.Role == "user" {
				if filed < len(d.said) {
					d.files, filed = nil, len(d.said)
				}
				d.files = append(d.files, name)
				continue
			}
			switch {
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

// servers matches text that the server has added to the conversation in the user's role.
var servers = lazyregexp.New(`^(?:\[record [a-z0-9]+\] |` +
	`For your information, from the record and not from the user: )`)

// noted keeps the server's report about the outcome of the newest words.
func (d *dialogue) noted(record string) {
	if last := len(d.said) - 1; last >= 0 {
		d.came[last] += record
	}
	if m := numbered.FindStringSubmatch(record); m != nil {
		var list []struct{ Title string }
		if json.Unmarshal([]byte(m[1]), &list) == nil {
			d.waits = nil
			for _, w := range list {
				d.waits = append(d.waits, waits{title: w.Title})
			}
		}
	}
	if m := asked.FindStringSubmatch(record); m != nil {
		d.waits = append(d.waits, waits{strings.TrimPrefix(m[1], "Waiting for your approval: "), d.last()})
	}
}

// last returns the user's last words.
func (d *dialogue) last() string {
	if len(d.said) == 0 {
		return ""
	}
	return d.said[len(d.said)-1]
}

// answer returns the next turn after the user's last words and the calls made for them.
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
	if turn, ok := d.takingBack(prompt); ok {
		return turn
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
	if turn, ok := d.first(d.talk, prompt); ok {
		return turn
	}
	return words("I do not understand “" + excerpt(prompt.raw, 120) + "”, so I did nothing about it. " + d.abilities())
}

// mixed reports whether a prompt asks both for a task of several calls and for mail or the calendar.
func (d *dialogue) mixed(prompt text) bool {
	if len(d.split(prompt)) < 2 {
		return false
	}
	if _, ok := d.first(d.tasks, prompt); !ok {
		return false
	}
	asks := d.understand(prompt.raw)
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

// call returns the calls of the requests, unless something is missing in one of them.
func (d *dialogue) call(asks []*ask) fakegemini.Turn {
	var turn fakegemini.Turn
	var lacking []string
	for _, a := range asks {
		switch c := a.made(); {
		case a.question != "":
			lacking = append(lacking, a.question)
		case d.tool(c.Name) == nil:
			return words("I have no tool here for “" + excerpt(d.last(), 120) + "”, so I did nothing about " +
				"it. " + d.abilities())
		default:
			turn.Calls = append(turn.Calls, c)
			if a.amends {
				turn.Text = stillWaits
			}
			turn.Text = join(turn.Text, a.note)
		}
	}
	if len(lacking) > 0 {
		return words(strings.Join(lacking, " "))
	}
	return turn
}

// stillWaits is the text next to a call that replaces a waiting one. The earlier call waits until its user decides.
const stillWaits = "The one before still waits: one press on the new card approves that and rejects the one before."

// permitted makes an answer obey the request's function-calling mode.
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
