package demomodel

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// usual is the length of an event by default.
const usual = time.Hour

var (
	named    = regexp.MustCompile(`(?i)\b(?:called|named|titled|entitled)\s+`)
	inviting = regexp.MustCompile(`(?i)(?:,\s*)?(?:\b(?:and\s+)?(?:with|invite|inviting|for)\s+)?<?` + addressLike +
		`>?(?:\s*(?:,\s*and\s|,|;|&|\band\b)\s*<?` + addressLike + `>?)*`)
	withThem = regexp.MustCompile(`(?i)\bwith\s+(?:them|her|him|both|everyone|everybody)\b`)
	inMine   = regexp.MustCompile(
		`(?i)\b(?:in|into|to|on)\s+(?:my|the|our)\s+(?:google\s+)?(?:calendar|diary|agenda)\b`)
	startVerb = regexp.MustCompile(`(?i)^\s*(?:` + eventVerb + `)\b`)
	articles  = regexp.MustCompile(`(?i)^(?:(?:me|us|a|an|the|new|my|to|for|calendar|(?:event|entry|slot)\s+for)\s+)+`)
	dangling  = regexp.MustCompile(`(?i)(?:^|[\s,;]+)(?:on|at|for|with|and|from|to|in|by|of|please|starting)$`)
	pointing  = regexp.MustCompile(`(?i)^(?:it|this|that|them)?$`)
	blankName = regexp.MustCompile(`(?i)^(?:(?:calendar|event|entry|slot|time)\s*)+$`)
)

// understandEvent parses a clause that begins with its verb, or with the event itself. before is the clause before it,
// and mail the mail that it requested: "it" may mean the mail's topic.
func understandEvent(t, before text, mail *Mail, now time.Time) Intent {
	e := &Event{Attendees: t.addresses()}
	if mail != nil && withThem.MatchString(t.mask) {
		e.Attendees = append(e.Attendees, mail.To...)
	}
	w := findWhen(t, now)
	e.Summary = title(t, w.leftover)
	if e.Summary == "" && mail != nil {
		e.Summary = mail.Subject
		if w.start == nil && w.in == 0 && !w.allDay {
			w = findWhen(before, now)
		}
	}
	if e.Summary == "" {
		e.Summary = "Event"
	}
	if w.repeats {
		return Intent{Event: e, Missing: OnceOnly}
	}
	return Intent{Event: e, Missing: w.fill(e, now)}
}

// title returns a quotation, or the name that was given, or the rest of the text without verb, times and people.
func title(t, left text) string {
	if q, ok := t.quoted(); ok {
		return q
	}
	if m := named.FindStringIndex(left.mask); m != nil {
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
	case pointing.MatchString(s):
		return ""
	case blankName.MatchString(s):
		return "Event"
	}
	return capitalise(s)
}

// fill sets the times of the event, and returns what is missing.
func (w when) fill(e *Event, now time.Time) Missing {
	loc := w.location(now)
	switch {
	case w.allDay && len(w.days) > 0:
		last := w.days[len(w.days)-1]
		e.AllDay, e.Start, e.End = true, w.days[0].String(), last.next(1).String()
		return ""
	case w.in > 0:
		at := now.In(loc).Add(w.in).Truncate(time.Minute)
		w.days, w.start = []day{dayOf(at)}, &clock{hour: at.Hour(), minute: at.Minute()}
	case w.start == nil:
		return MissingTime
	case len(w.days) == 0:
		w.days = []day{w.nextDay(now.In(loc))}
	}
	e.TimeZone = w.zone
	if e.TimeZone == "" && loc.String() != "Local" {
		e.TimeZone = loc.String()
	}
	first, last := w.days[0], w.days[len(w.days)-1]
	e.Start = stamp(first, w.start.minutes(), e.TimeZone, loc)
	end := w.start.minutes() + int(w.lasting()/time.Minute)
	if w.end != nil {
		end = w.end.minutes()
		if end <= w.start.minutes() && first == last {
			end += 24 * 60
		}
	} else {
		last = first
	}
	e.End = stamp(last.next(end/(24*60)), end%(24*60), e.TimeZone, loc)
	return ""
}

func (w when) lasting() time.Duration {
	if w.length > 0 {
		return w.length
	}
	return usual
}

// nextDay returns today, or tomorrow if today's time has passed.
func (w when) nextDay(now time.Time) day {
	if w.start.minutes() > 60*now.Hour()+now.Minute() {
		return dayOf(now)
	}
	return dayOf(now).next(1)
}

// stamp formats a time on a day. In a named zone the tool decides whether that time exists.
func stamp(d day, minutes int, zone string, loc *time.Location) string {
	if zone == "" {
		return time.Date(d.year, d.month, d.day, minutes/60, minutes%60, 0, 0, loc).Format(time.RFC3339)
	}
	return fmt.Sprintf("%sT%02d:%02d:00", d, minutes/60, minutes%60)
}

func dayOf(t time.Time) day { return day{t.Year(), t.Month(), t.Day()} }

// next returns the day n days later.
func (d day) next(n int) day {
	if n == 0 {
		return d
	}
	return dayOf(time.Date(d.year, d.month, d.day+n, 0, 0, 0, 0, time.UTC))
}

func (d day) String() string { return fmt.Sprintf("%04d-%02d-%02d", d.year, d.month, d.day) }
