// Package demomodel implements the offline demo model of the local server. It speaks the Gemini protocol, so that the
// real client and the whole runtime work without a key. It is not a language model but a small grammar: it does exactly
// the wish, or answers with the part that it did not understand. It never changes a wish.
//
// [Model] is the whole of it. A dialogue (dialogue.go) is a request taken apart; wishes.go finds what its newest words
// ask for, clause by clause, by rules (rule.go) of phrases (phrase.go). Each domain has its rules in a file: mail.go,
// calendar.go, look.go and find.go for what is read, page.go, terminal.go, talk.go. What no rule knows, anytool.go
// calls by its name and schema alone. follow.go has what is said of the wish before: another time, a further guest.
// Times are read by when.go, dates.go, clock.go and zone.go, and what nothing reads is asked about by doubt.go,
// maildoubt.go and people.go. report.go tells what came of it. A session of the planner is answered by plan.go.
package demomodel

import (
	"net/http"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// rulebook has the rules in the order in which they are tried. A further domain is a further file and an entry here.
type rulebook struct {
	tasks    []rule // of several calls; tried first, on the whole prompt
	requests []rule // of one call each, several of them in one prompt
	talk     []rule // of words alone
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
