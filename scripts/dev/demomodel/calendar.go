package demomodel

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

const eventTool = "calendar_event_create"

// eventArgs holds the arguments of calendar_event_create. Start and End are local times of TimeZone, or have an offset
// if the zone has no name, or are dates of an all-day event.
type eventArgs struct {
	Summary   string   `json:"summary"`
	Start     string   `json:"start"`
	End       string   `json:"end"`
	TimeZone  string   `json:"timeZone,omitempty"`
	AllDay    bool     `json:"allDay,omitempty"`
	Attendees []string `json:"attendees,omitempty"`
	Meet      bool     `json:"meet,omitempty"`
}

const (
	planning = `schedule|create|put|add|book|plan|arrange|organize|organise|enter|block|set up|make|invite|set`
	nouns    = `calendar|diary|agenda|meeting|event|appointment|call|lunch|dinner|breakfast|coffee|standup|stand-up|` +
		`demo|reminder|session|workshop|review|interview|party`
)

// calendarRules match requests for an event, and texts with only an event's name, day and time.
var calendarRules = []rule{{
	phrases: phrases("… ("+planning+") … {noun|"+nouns+"} …", "(do|have) (a|an|another) {noun|"+nouns+"} …",
		"… invite {who} …", "… remind me …", "… ("+planning+") {timed}"),
	call: event, tool: eventTool, joins: true,
	about: aboutEvent, done: "created",
	example: "schedule lunch tomorrow at noon with ana@example.com",
}, {
	phrases: phrases("[(i need|i have|i want|i've got)] {bare}"), fallback: true,
	call: bareEvent, tool: eventTool, about: aboutEvent, done: "created",
}}

// event fills an event from the request and from the user's later words about it.
func event(a *ask) (any, string) {
	e := &eventArgs{Attendees: a.text.addresses()}
	w := findWhen(a.text, a.now)
	w.leftover = w.leftover.without(withLink)
	e.Meet = videoCall.MatchString(a.text.mask)
	if _, timed := a.slots["timed"]; timed && !w.timed() && len(w.days) == 0 && w.part == "" {
		return nil, ""
	}
	for _, later := range append(slices.Clone(a.since.times), a.reply) {
		w = w.with(timesIn(later, a.now))
	}
	left, unknown := strangers(w.leftover)
	if m := besideGuests.FindStringSubmatch(a.text.mask); m != nil && unknown == "" {
		unknown = m[1]
	}
	e.Summary = title(a.text, left)
	e.remind(w.leftover)
	if before := a.before.people(); len(before) > 0 && withThem.MatchString(a.text.mask) {
		e.Attendees, unknown = append(e.Attendees, before...), ""
	}
	w = a.completeFromBefore(e, w)
	e.Summary = cmp.Or(a.since.name, e.Summary, "Event")
	if more := slices.Concat(a.since.people, a.reply.addresses()); len(more) > 0 {
		e.Attendees, unknown = append(e.Attendees, more...), ""
	}
	doubt := cmp.Or(w.doubt(), a.doubtEvent(w))
	a.choices, a.note = nil, ""
	switch {
	case w.repeats:
		return e, "I am the offline demo model and can make single events only. Please give one day and time."
	case doubt != "":
		a.choices = a.starts(w)
		return e, doubt
	case unknown != "":
		return e, addressOf(unknown)
	case !w.fill(e, a.now):
		return e, "When should “" + e.Summary + "” be? Please give a day and a time, such as tomorrow at 10."
	case w.over(a.now):
		return e, "That time is over: " + spoken(e.Start) + ". Which time do you mean?"
	}
	if len(w.days) == 0 && w.start != nil {
		a.note = "You named no day, so I took the next one: " + spoken(e.Start) + inZone(e.TimeZone) + "."
	}
	if booking.MatchString(a.text.mask) {
		a.note = join(a.note, "I can book, order and buy nothing: this is only an event in your calendar.")
	}
	return e, ""
}

// completeFromBefore takes the name of an event, or its missing time, from the request before it.
func (a *ask) completeFromBefore(e *eventArgs, w when) when {
	switch before := a.before.args.(type) {
	case *eventArgs:
		if e.Summary == "One" { // “a call with Ana, and one with Bob”
			e.Summary = before.Summary
		}
	case *mailArgs:
		if e.Summary != "" {
			return w
		}
		e.Summary = before.Subject
		if !w.timed() {
			return findWhen(a.before.text, a.now).with(w)
		}
	}
	return w
}

var (
	videoCall = lazyregexp.New(`(?i)\b(?:video[\s-]?(?:call|chat|conference|meeting|link)|google\s+meet|` +
		`meet\s+link)\b`)
	reminding = lazyregexp.New(`(?i)^\W*(?:please\s+)?remind\s+me\b.*?\bto\s+` +
		`((?:e-?mail|mail|message|write|tell|ask|call|ping|answer|thank|send)\b.*` + oneAddress + `.*)$`)
	withLink = lazyregexp.New(`(?i)\b(?:with|on|over|via|by|and)\s+(?:an?\s+)?(?:google\s+meet|(?:google\s+)?` +
		`(?:meet|video)[\s-]?(?:link|call))\b`)
)

// remind names the event after a task that its user wants to do for somebody, who is not a guest.
func (e *eventArgs) remind(left text) {
	if m := reminding.FindStringSubmatchIndex(left.mask); m != nil {
		e.Summary, e.Attendees = capitalise(strings.TrimRight(oneSpace(left.raw[m[2]:m[3]]), " .!")), nil
	}
}

// starts returns one request for each start that the text names, if only the starts are in doubt.
func (a *ask) starts(w when) (out []*ask) {
	if len(w.starts) < 2 {
		return nil
	}
	for _, start := range w.starts {
		one := *a
		one.since.times = append(slices.Clone(a.since.times), start)
		if one.fill(); one.question == "" {
			out = append(out, &one)
		}
	}
	return out
}

// bareEvent takes the name of an event with its day and time, and no verb.
func bareEvent(a *ask) (any, string) {
	w := findWhen(a.text, a.now)
	if told.MatchString(a.slots["bare"].mask) || mailWord.MatchString(a.text.mask) || len(w.days) == 0 || !w.timed() ||
		title(a.text, w.leftover) == "" {
		return nil, ""
	}
	return event(a)
}

// lists reports whether a text continues with a further event, whose verb is in the clause before. Each event needs a
// day of its own, because one day could be for both or only for the nearer.
func (d *dialogue) lists(before, t text) bool {
	verb := startVerb.MatchString(before.mask[len(courteously.FindString(before.mask)):])
	if !verb || !furtherEvent.MatchString(t.mask) {
		return false
	}
	first, next := findWhen(before, d.now), findWhen(t, d.now)
	return first.timed() && next.timed() && len(first.days) > 0 && len(next.days) > 0
}

var (
	courteously  = lazyregexp.New(`(?i)^` + courtesy)
	furtherEvent = lazyregexp.New(`(?i)^(?:an?\s+|another\s+|the\s+)?(?:` + nouns + `|one)\b`)

	told         = lazyregexp.New(`(?i)^\W*(?:i|we|you|he|she|it|they|my|this|that|there)\b`)
	mailWord     = lazyregexp.New(`(?i)\b(?:e-?mail|mail|message)\b`)
	calendarWord = lazyregexp.New(`(?i)\b(?:calendar|diary|agenda)\b`)
)

// timed reports whether the text has a time of day or a whole day.
func (w when) timed() bool { return w.start != nil || w.in > 0 || w.allDay && len(w.days) > 0 }

// over reports whether the named day and time have passed.
func (w when) over(now time.Time) bool {
	if len(w.days) == 0 || w.start == nil {
		return false
	}
	first := w.days[0]
	return time.Date(first.year, first.month, first.day, 0, w.start.minutes()+int(w.shift/time.Minute), 0, 0,
		w.location(now)).Before(now)
}

// fill sets the times of the event, and reports whether it found them.
func (w when) fill(e *eventArgs, now time.Time) bool {
	loc := w.location(now)
	switch {
	case w.allDay && len(w.days) > 0:
		last := w.days[len(w.days)-1]
		e.AllDay, e.Start, e.End = true, w.days[0].String(), last.next(1).String()
		return true
	case w.in > 0:
		at := now.In(loc).Add(w.in).Truncate(time.Minute)
		w.days, w.start = []day{dayOf(at)}, &clock{hour: at.Hour(), minute: at.Minute()}
	case w.start == nil:
		return false
	case len(w.days) == 0:
		today := now.In(loc)
		if w.start.minutes() <= 60*today.Hour()+today.Minute() {
			today = today.AddDate(0, 0, 1)
		}
		w.days = []day{dayOf(today)}
	}
	e.TimeZone = w.zone
	if e.TimeZone == "" && loc.String() != "Local" {
		e.TimeZone = loc.String()
	}
	first, last := w.days[0], w.days[0]
	end := w.start.minutes() + int(cmp.Or(w.length, time.Hour)/time.Minute)
	if w.end != nil {
		last, end = w.days[len(w.days)-1], w.end.minutes()
		if end <= w.start.minutes() && first == last {
			end += 24 * 60
		}
	}
	later := int(w.shift / time.Minute)
	e.Start = stamp(first, w.start.minutes()+later, e.TimeZone, loc)
	e.End = stamp(last, end+later, e.TimeZone, loc)
	return true
}

// stamp formats the time at a number of minutes after the beginning of a day. In a named zone the tool decides whether
// that time exists.
func stamp(d day, minutes int, zone string, loc *time.Location) string {
	at := time.Date(d.year, d.month, d.day, 0, minutes, 0, 0, time.UTC)
	if zone == "" {
		return time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), 0, 0, loc).Format(time.RFC3339)
	}
	return at.Format("2006-01-02T15:04:05")
}

func aboutEvent(args json.RawMessage) string {
	var e eventArgs
	_ = json.Unmarshal(args, &e) // it is an event without a name then
	return "the event “" + e.Summary + "” on " + spoken(e.Start)
}

// inZone names the time zone after a time.
func inZone(zone string) string {
	if zone == "" {
		return ""
	}
	return " (" + zone + ")"
}

// spoken says in words when an event begins: Friday, 4 December 2026 at 12:00.
func spoken(start string) string {
	for _, layout := range []string{"2006-01-02T15:04:05", time.RFC3339} {
		if at, err := time.Parse(layout, start); err == nil {
			return at.Format(longDate + " at 15:04")
		}
	}
	if at, err := time.Parse(time.DateOnly, start); err == nil {
		return at.Format(longDate)
	}
	return start // the start that its user wrote into the card
}
