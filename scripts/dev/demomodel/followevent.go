package demomodel

import (
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// events returns the earlier events.
func (f *follow) events() []*ask {
	return slices.DeleteFunc(slices.Clone(f.before), func(a *ask) bool { _, is := a.args.(*eventArgs); return !is })
}

// moved returns an earlier event at another time.
func (f *follow) moved() ([]*ask, bool) {
	what := f.slots["what"]
	spoken := itself.FindString(what.mask) // “make it …” is about an event, even if there is none
	what = what.from(len(spoken)).and(f.slots["time"])
	w := timesIn(what, f.now)
	events := f.events()
	left := w.leftover
	if called := f.named(left.left()); len(called) > 0 {
		events, left = called, text{}
	}
	mail, isMail := f.retimed(what)
	switch {
	case !w.some() && w.length == 0 && w.shift == 0 && w.zone == "", spoken == "" && remains(left.mask):
		return nil, false
	case len(events) == 0 && isMail:
		return mail, true
	case len(events) == 0 && spoken != "" && f.tool(eventTool) != nil:
		return f.asking("I do not know which event you mean: none was asked for just before. Please say the whole " +
			"event.")
	case len(events) == 0:
		return f.further()
	case remains(left.mask):
		return f.asking(unread(left.left()))
	}
	later := func(s *since) { s.times = append(s.times, what) }
	if len(events) == 1 {
		return f.again(events[0], later), true
	}
	var choices []*ask
	for _, a := range events {
		choices = append(choices, f.changed(a, later))
	}
	return f.asking("Which of them do you mean: "+titles(events)+"?", choices...)
}

var itself = lazyregexp.New(`(?i)^\s*(?:it|that|this|the\s+(?:event|meeting|time))\b`)

// named returns the events whose names have all of the words.
func (f *follow) named(words string) []*ask {
	wanted := wordsOf(filler.ReplaceAllString(words, " "))
	return slices.DeleteFunc(f.events(), func(a *ask) bool {
		return len(wanted) == 0 || !contains(wordsOf(a.args.(*eventArgs).Summary), wanted...)
	})
}

func titles(events []*ask) string {
	var names []string
	for _, a := range events {
		names = append(names, "“"+a.args.(*eventArgs).Summary+"”")
	}
	return strings.Join(names, " or ")
}

// joined returns the earlier event with additional guests.
func (f *follow) joined() ([]*ask, bool) {
	a, _ := lastOf[*eventArgs](f.before)
	who := f.slots["who"].and(f.slots["to"])
	if m, _ := lastOf[*mailArgs](f.before); m != nil && m.question != "" && f.slots["to"].raw != "" {
		return nil, false // it answers who gets the e-mail
	}
	if a == nil || findWhen(who, f.now).some() || len(who.addresses()) == 0 && !nameAlone.MatchString(who.plain()) {
		return nil, false
	}
	if len(who.addresses()) == 0 {
		return f.asking(addressOf(beside.ReplaceAllString(who.raw, "")))
	}
	return f.again(a, func(s *since) { s.people = append(slices.Clone(s.people), who.addresses()...) }), true
}

var nameAlone = lazyregexp.New(`^` + aName + `(?i:\s+(?:to\s+(?:it|that)|too|as\s+well|please)[\s.!]*)?$`)

var beside = lazyregexp.New(`(?i)\b(?:too|as\s+well|also|to\s+(?:it|that)|please)\b|` + oneAddress)

// renamed returns the last earlier request with another name or subject.
func (f *follow) renamed() ([]*ask, bool) {
	if len(f.before) == 0 {
		return nil, false
	}
	a := f.before[len(f.before)-1]
	if a.people() == nil && len(f.events()) == 0 {
		return nil, false
	}
	return f.again(a, func(s *since) { s.name = capitalise(strings.TrimRight(f.slots["called"].plain(), ".")) }), true
}

// repeated returns a new event like the previous one, at another time.
func (f *follow) repeated() ([]*ask, bool) {
	a, _ := lastOf[*eventArgs](f.before)
	w := timesIn(f.slots["what"], f.now)
	if a == nil || !w.changes() {
		return nil, false
	}
	return []*ask{f.changed(a, func(s *since) { s.times = append(s.times, f.slots["what"]) })}, true
}

// further returns the earlier question again, for another time or about somebody else.
func (f *follow) further() ([]*ask, bool) {
	if len(f.before) == 0 {
		return nil, false
	}
	rest := f.slots["what"].and(f.slots["time"]).raw
	var asks []*ask
	switch p := f.before[len(f.before)-1].args.(type) {
	case *periodArgs:
		w := findWhen(read(rest), f.now)
		if w.start != nil && len(w.days) == 0 && p.From != "" {
			rest += " on " + p.From[:len(time.DateOnly)]
		}
		if w.some() || someWeek.MatchString(rest) || withWhom.MatchString(rest) {
			asks = f.understand("what is on " + rest)
		}
	case *eventArgs: // “and dinner at 8 pm”, on the same day
		w := findWhen(read(rest), f.now)
		if w.timed() && len(w.days) == 0 && title(read(rest), w.leftover) != "" && p.Start != "" {
			asks = f.understand("schedule " + rest + " on " + p.Start[:len(time.DateOnly)])
		}
	case *findArgs:
		if sender.MatchString(rest) || topics.MatchString(rest) {
			asks = f.understand("any mail " + rest)
		}
	}
	return asks, len(asks) > 0
}
