// Package demomodel implements the offline demo model of the local server. It speaks the Gemini protocol, so that the
// real client and the whole runtime work without a key. It is not a language model but a list of rules, a file for each
// domain (mail.go, calendar.go, page.go, terminal.go, talk.go): which phrases a rule takes, which tool it calls for
// them, and what it says of the result. What no rule knows, anytool.go calls by its name and schema alone. A session of
// the planner is answered by plan.go.
//
// [Model] is the whole of it; rule.go has what a rule is, dialogue.go how one is found for a request.
package demomodel

import (
	"net/http"
	"regexp"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// rulebook has the rules in the order in which they are tried. A further domain is a further file and an entry here.
type rulebook struct {
	tasks    []rule // of several calls; tried first, on the whole prompt
	requests []rule // of one call each, several of them in one prompt
	talk     []rule // of words alone
}

var everything = rulebook{
	tasks:    slices.Concat(terminalRules, pageRules),
	requests: slices.Concat(namedToolRules, mailRules, calendarRules, findRules, lookRules, wordedToolRules),
	talk:     talkRules,
}

// pace is the pause before each word of a streamed answer, so that the stream is visible.
const pace = 12 * time.Millisecond

// New returns a handler that serves the model at the paths of the Gemini API. Words such as "tomorrow" are relative to
// now, in the time zone that the prompt names, or else that of the user in the instructions, or else that of now.
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

var usersZone = regexp.MustCompile(`\btime zone is ([A-Za-z0-9_+/-]+);`)

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
