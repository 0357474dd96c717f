package demomodel

import (
	"encoding/json"
	"fmt"

	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// A rule is one kind of request that the model understands. Either call or next makes the answer. Both may decline a
// request that the phrases match; then the next rule is tried.
type rule struct {
	phrases []phrase // the forms of the request; the first that matches counts

	// call returns the arguments of the rule's tool, or a question that the user must answer first.
	call      func(*ask) (args any, question string)
	tool      string
	about     func(args json.RawMessage) string // describes a call of the tool: “the e-mail to Ana”
	done      string                            // describes its success: “sent”
	joins     bool                              // it may follow another request in the same prompt
	goesOn    bool                              // only there, and only if the other request is complete
	questions bool                              // it can have the form of a question
	fallback  bool                              // it applies only if no other rule accepts the request
	example   string                            // a request that the user can try

	tell func(*dialogue, step) string // describes the result of an executed call; nil: only that it was done

	// next returns the next turn of a request that takes several of them, or only words.
	next func(*ask) (turn fakegemini.Turn, ok bool)
}

// An ask is a request with the parts that a rule found in it.
type ask struct {
	*dialogue
	rule   *rule
	text   text            // the request, from its first word
	slots  map[string]text // the words in the phrase's slots
	before *ask            // the previous request in the same prompt, which “it” may mean
	reply  text            // the user's answer to the question about it
	since  since           // the user's later words about it

	args     any
	question string
	choices  []*ask // the choices that the question offers
	chosen   int    // the number of the choice that this is, from 1
	note     string // text next to the call about details that the request left open
	amends   bool   // it replaces a request whose card still waits
}

// since holds the user's later words about a request.
type since struct {
	times      []text   // replace the earlier ones
	people     []string // additional guests of an event; new recipients of an e-mail
	cc, bcc    []string // additional ones
	name, body string   // of an event, or an e-mail's subject; replace the earlier ones
}

// match returns the request in a text, if the rule takes it.
func (r *rule) match(d *dialogue, t text) (*ask, bool) {
	for _, p := range r.phrases {
		if slots, at, ok := p.match(t); ok {
			return &ask{dialogue: d, rule: r, text: t.from(at), slots: slots, before: &ask{}}, true
		}
	}
	return nil, false
}

// fill fills the rule's call from the request, and reports whether the rule accepts the request.
func (a *ask) fill() bool {
	a.args, a.question = a.rule.call(a)
	return a.args != nil || a.question != ""
}

// slot returns the words in a slot, or the alternative if there are none.
func (a *ask) slot(name, alternative string) string {
	if s := a.slots[name].plain(); s != "" {
		return s
	}
	return alternative
}

func (a *ask) made() fakegemini.Call {
	if c, ok := a.args.(fakegemini.Call); ok {
		return c
	}
	return fakegemini.Call{Name: a.rule.tool, Args: a.args}
}

// words returns a turn with only this text, for a rule's next.
func words(s string) fakegemini.Turn { return fakegemini.Turn{Text: s} }

func says(format string, args ...any) (fakegemini.Turn, bool) {
	return words(fmt.Sprintf(format, args...)), true
}

func calls(c ...fakegemini.Call) (fakegemini.Turn, bool) { return fakegemini.Turn{Calls: c}, true }

func declined() (fakegemini.Turn, bool) { return fakegemini.Turn{}, false }
