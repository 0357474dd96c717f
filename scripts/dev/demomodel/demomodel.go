// Package demomodel implements the offline demo model of the local server. It speaks the Gemini protocol, so that the
// real client and the whole runtime work without a key, and it understands plain requests in English to write mail, to
// create calendar events, and to use the page that its user has open. It is not a language model: it looks for verbs,
// addresses and times, says what it did not find, and answers everything else with a description of itself.
//
// Understand reads a prompt; report.go describes function responses in words; page.go decides what to do on a page;
// this file connects them to the protocol.
package demomodel

import (
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// The tools that the model calls if they are declared.
const (
	mailTool  = "gmail_send"
	eventTool = "calendar_event_create"
)

// pace is the pause before each word of a streamed answer, so that the stream is visible.
const pace = 12 * time.Millisecond

// New returns a handler that serves the model at the paths of the Gemini API. Words such as "tomorrow" are relative to
// now, in the time zone that the prompt names, or else that of the user in the instructions, or else that of now.
func New(now func() time.Time) http.Handler { return fakegemini.New(Model(now)) }

// Model returns the model behind [New].
func Model(now func() time.Time) fakegemini.ModelFunc {
	return func(r fakegemini.Request) fakegemini.Turn {
		turn := think(r, forUser(r.System, now()))
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

func think(r fakegemini.Request, now time.Time) fakegemini.Turn {
	if turn, ok := onPage(r); ok {
		return turn
	}
	if responses := r.Responses(); responses != nil {
		return words(report(callsBefore(r), responses))
	}
	intents := intend(r, now)
	switch {
	case len(intents) == 0:
		return words(join(smallTalk(r.User()), readSurface(r).abilities()))
	case r.NoTools:
		return words("I understood what you want, but I may call no tools in this answer, so nothing was done. " +
			"Please ask again.")
	}
	var calls []fakegemini.Call
	var lacking []string
	for _, i := range intents {
		switch name, args := i.call(); {
		case i.Missing != "":
			lacking = append(lacking, i.ask())
		case !r.Has(name):
			lacking = append(lacking, "I have no tool called "+name+" here.")
		default:
			calls = append(calls, fakegemini.Call{Name: name, Args: args})
		}
	}
	if len(lacking) > 0 {
		return words(strings.Join(lacking, " "))
	}
	return fakegemini.Turn{Calls: calls}
}

func words(s string) fakegemini.Turn { return fakegemini.Turn{Text: s} }

// intend parses the newest prompt, or takes it as the answer to what was missing in the one before.
func intend(r fakegemini.Request, now time.Time) []Intent {
	said := userWords(r.Contents)
	if len(said) == 0 {
		return nil
	}
	last := said[len(said)-1]
	intents := Understand(last, now)
	if len(said) == 1 || len(intents) > 0 && intents[0].Missing == "" {
		return intents
	}
	before := Understand(said[len(said)-2], now)
	completed := false
	for i := range before {
		if before[i].Missing != "" && !completed {
			before[i], completed = before[i].complete(last, now)
		}
	}
	if completed {
		return before
	}
	return intents
}

// userWords returns the user's texts, oldest first.
func userWords(contents []fakegemini.Content) (said []string) {
	for _, c := range contents {
		for _, p := range c.Parts {
			if c.Role == "user" && p.Text != nil {
				said = append(said, *p.Text)
			}
		}
	}
	return said
}

// callsBefore returns the calls that the request's responses answer.
func callsBefore(r fakegemini.Request) (calls []fakegemini.FunctionCall) {
	for _, p := range r.Contents[len(r.Contents)-2].Parts {
		if p.FunctionCall != nil {
			calls = append(calls, *p.FunctionCall)
		}
	}
	return calls
}
