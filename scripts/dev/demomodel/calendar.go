package demomodel

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"
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
}

const (
	planning = `schedule|create|put|add|book|plan|arrange|organize|organise|enter|block|set up|make|invite`
	nouns    = `calendar|diary|agenda|meeting|event|appointment|call|lunch|dinner|breakfast|coffee|standup|stand-up|` +
		`demo|reminder|session|workshop|review|interview|party`
)

// calendarRules know the forms of a request for an event, and an event by its name, day and time alone.
var calendarRules = []rule{{
	phrases: phrases("… ("+planning+") … {noun|"+nouns+"} …", "… invite {to} …", "… ("+planning+") {timed}"),
	call:    event, tool: eventTool, joins: true,
	about: aboutEvent, done: "created",
	example: "schedule lunch tomorrow at noon with ana@example.com",
}, {
	phrases: phrases("{bare}"), fallback: true,
	call: bareEvent, tool: eventTool, about: aboutEvent, done: "created",
}}

func event(a *ask) (any, string) {
	e := &eventArgs{Attendees: a.text.addresses()}
	w := findWhen(a.text, a.now)
	if _, timed := a.slots["timed"]; timed && !w.timed() {
		return nil, ""
	}
	e.Summary = title(a.text, w.leftover)
	if m, ok := a.before.args.(*mailArgs); ok {
		if withThem.MatchString(a.text.mask) {
			e.Attendees = append(e.Attendees, m.To...)
		}
		if e.Summary == "" {
			e.Summary = m.Subject
			if !w.timed() {
				w = findWhen(a.before.text, a.now)
			}
		}
	}
	if e.Summary == "" {
		e.Summary = "Event"
	}
	if a.reply.raw != "" {
		w = findWhen(a.text.and(a.reply), a.now)
	}
	switch {
	case w.repeats:
		return e, "I am the offline demo model and can make single events only. Please give one day and time."
	case w.doubt() != "":
		return e, w.doubt()
	case a.doubtEvent(w) != "":
		return e, a.doubtEvent(w)
	case !w.fill(e, a.now):
		return e, "When should “" + e.Summary + "” be? Please give a day and a time, such as tomorrow at 10."
	}
	return e, ""
}

// bareEvent takes the name of an event with its day and time, and no verb.
func bareEvent(a *ask) (any, string) {
	w := findWhen(a.text, a.now)
	if told.MatchString(a.text.mask) || mailWord.MatchString(a.text.mask) || len(w.days) == 0 || !w.timed() ||
		title(a.text, w.leftover) == "" {
		return nil, ""
	}
	return event(a)
}

// lists reports whether a text goes on with a further event, of which the verb stands in the clause before. Each has
// its own day: one day for both is not told from one for the nearer.
func (d *dialogue) lists(before, t text) bool {
	verb := startVerb.MatchString(before.mask[len(courteously.FindString(before.mask)):])
	if !verb || !furtherEvent.MatchString(t.mask) {
		return false
	}
	first, next := findWhen(before, d.now), findWhen(t, d.now)
	return first.timed() && next.timed() && len(first.days) > 0 && len(next.days) > 0
}

var (
	courteously  = regexp.MustCompile(`(?i)^` + courtesy)
	furtherEvent = regexp.MustCompile(`(?i)^(?:an?\s+|another\s+|the\s+)?(?:` + nouns + `)\b`)

	told         = regexp.MustCompile(`(?i)^\W*(?:i|we|you|he|she|it|they|my|this|that|there)\b`)
	mailWord     = regexp.MustCompile(`(?i)\b(?:e-?mail|mail|message)\b`)
	calendarWord = regexp.MustCompile(`(?i)\b(?:calendar|diary|agenda)\b`)

	called   = regexp.MustCompile(`(?i)\b(?:called|named|titled|entitled)\s+`)
	inviting = regexp.MustCompile(`(?i)(?:,\s*)?(?:\b(?:and\s+)?(?:with|invite|inviting|for)\s+)?` + addressList)
	withThem = regexp.MustCompile(`(?i)\bwith\s+(?:them|her|him|both|everyone|everybody)\b`)
	inMine   = regexp.MustCompile(
		`(?i)\b(?:in|into|to|on)\s+(?:my|the|our)\s+(?:google\s+)?(?:calendar|diary|agenda)\b`)
	startVerb = regexp.MustCompile(`(?i)^\s*(?:` + strings.ReplaceAll(planning, " ", `\s+`) + `)\b`)
	articles  = regexp.MustCompile(`(?i)^(?:(?:me|us|a|an|the|new|my|to|for|calendar|(?:event|entry|slot)\s+for)\s+)+`)
	dangling  = regexp.MustCompile(`(?i)(?:^|[\s,;]+)(?:on|at|for|with|and|from|to|in|by|of|please|starting)$`)
	blankName = regexp.MustCompile(`(?i)^(?:(?:calendar|event|entry|slot|time)\s*)+$`)
)

// title returns a quotation, or the name that was given, or the rest of the text without verb, times and people.
func title(t, left text) string {
	if q, ok := t.quoted(); ok {
		return q
	}
	if m := called.FindStringIndex(left.mask); m != nil {
		left = left.blank(0, m[1])
	}
	for _, re := range []*regexp.Regexp{inviting, withThem, inMine, startVerb} {
		for _, m := range re.FindAllStringIndex(left.mask, -1) {
			left = left.blank(m[0], m[1])
		}
	}
	s := left.left()
	for old := ""; old != s; {
		old = s
		s = strings.Trim(s, " ,;:.!?-–—()")
		s = articles.ReplaceAllString(s+" ", "")
		s = dangling.ReplaceAllString(strings.TrimSpace(s), "")
	}
	switch {
	case pronoun.MatchString(s):
		return ""
	case blankName.MatchString(s):
		return "Event"
	}
	return capitalise(s)
}

// timed reports whether there is a time of day, or a whole day.
func (w when) timed() bool { return w.start != nil || w.in > 0 || w.allDay && len(w.days) > 0 }

// fill sets the times of the event, and reports whether they are known.
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
	e.Start = stamp(first, w.start.minutes(), e.TimeZone, loc)
	e.End = stamp(last.next(end/(24*60)), end%(24*60), e.TimeZone, loc)
	return true
}

// stamp formats a time on a day. In a named zone the tool decides whether that time exists.
func stamp(d day, minutes int, zone string, loc *time.Location) string {
	if zone == "" {
		return time.Date(d.year, d.month, d.day, minutes/60, minutes%60, 0, 0, loc).Format(time.RFC3339)
	}
	return fmt.Sprintf("%sT%02d:%02d:00", d, minutes/60, minutes%60)
}

func aboutEvent(args json.RawMessage) string {
	var e eventArgs
	_ = json.Unmarshal(args, &e) // it is an event without a name then
	return "the event “" + e.Summary + "” on " + strings.Replace(e.Start, "T", " at ", 1)
}
