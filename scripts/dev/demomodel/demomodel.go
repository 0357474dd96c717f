// Package demomodel implements the offline demo model of the local server. It speaks the Gemini protocol, so that the
// real client and the whole runtime work without a key. It is not a language model but a small grammar: it makes
// exactly the requested calls, or answers with the part that it did not understand. It never changes a request.
//
// [Model] is the entry. A dialogue (dialogue.go) is a parsed request; wishes.go finds the requests in its newest words,
// clause by clause, by rules (rule.go) of phrases (phrase.go). Each domain has its rules in a file: mail.go,
// calendar.go, look.go and find.go for questions, page.go, terminal.go, talk.go. anytool.go calls tools that no rule
// knows, by their names and schemas alone. follow.go handles changes of an earlier request: another time, a further
// guest. when.go, dates.go, clock.go and zone.go read times; doubt.go, maildoubt.go and people.go ask about words that
// nothing else reads. report.go reports the outcome. plan.go answers sessions of the planner.
package demomodel

import (
	"net/http"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// rulebook holds the rules in the order in which they are tried. To add a domain, add a file and an entry here.
type rulebook struct {
	tasks    []rule // rules for several calls; tried first, on the whole prompt
	requests []rule // rules for one call each; a prompt can have several of them
	talk     []rule // rules that answer in words only
}

var everything = rulebook{
	tasks: slices.Concat(terminalRules, pageRules),
	requests: slices.Concat(namedToolRules, enclosingRules, mailRules, calendarRules, findRules, lookRules,
		wordedToolRules),
	talk: talkRules,
}

// pace is the pause before each word of a streamed answer, so that the stream is visible.
const pace = 12 * time.Millisecond

// New returns a handler that serves the model at the paths of the Gemini API. Words such as "tomorrow" are relative to
// now, in the first known time zone of: the prompt, the user in the instructions, now.
func New(now func() time.Time) http.Handler { return fakegemini.New(Model(now)) }

// Model returns the model behind [New].
func Model(now func() time.Time) fakegemini.ModelFunc {
	return func(r fakegemini.Request) fakegemini.Turn {
		d := newDialogue(r, everything, forUser(r.System, now()))
		turn, ok := d.planned()
		if !ok {
			turn = d.permitted(d.answer())
		}
		turn.Delay = pace
		return turn
	}
}

var usersZone = lazyregexp.New(`\btime zone is ([A-Za-z0-9_+/-]+);`)

// forUser returns now in the user's time zone, which is named at the end of the instructions.
func forUser(system string, now time.Time) time.Time {
	named := usersZone.FindAllStringSubmatch(system, -1)
	if len(named) == 0 {
		return now
	}
	zone, err := time.LoadLocation(named[len(named)-1][1])
	if err != nil {
		return now
	}
	return now.In(zone)
}
