package demomodel

import (
	"cmp"
	"encoding/json"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

const listTool = "calendar_events_list"

// periodArgs holds the arguments of calendar_events_list. Times have the form of [eventArgs].
type periodArgs struct {
	From     string `json:"from"`
	To       string `json:"to"`
	TimeZone string `json:"timeZone,omitempty"`
	Query    string `json:"query,omitempty"`
	Limit    int    `json:"limit,omitempty"`
}

const (
	days     = `calendar|agenda|diary|schedule`
	meetings = `event|events|meeting|meetings|appointment|appointments|plans`
)

// lookRules are the rules for questions about the calendar's contents.
var lookRules = []rule{{
	phrases: phrases("(what|what's|whats|anything|is anything|is there anything) [is] [there] "+
		"(on|in|planned|scheduled|happening) [{rest}]",
		"(what do i have|what do we have|what have i|what have i got|do i have|have i got|when am i|am i|are we) "+
			"[{rest}]",
		"(when is|when's|when are|what time is|at what time is) (my|our|the) {rest}",
		"(what|which|how many) [other] ("+meetings+") (do i have|do we have|have i|are there) [{rest}]",
		"(what's|what is) [(my|our|the)] (next|upcoming) [{rest}]",
		"(check|see|show [me]|tell me|look up|look at) (what|what's|whats) {rest}",
		"(show|list|see|read) [me] {rest} ("+meetings+"|"+days+")",
		"(is there anything|anything|is anything|what is there) {when}",
		"(what does|how does|what's|how is) (my|our) (day|week|weekend) [(look|looking)] [like] [{rest}]",
		"(show|list|read|check|look [up|at|into]|see) [me] [my|our|the] [next|upcoming] "+
			"("+days+"|"+meetings+") [{rest}]",
		"(any|are there any|is there any) [other] ("+meetings+") [{rest}]"),
	call: look, tool: listTool, questions: true, joins: true,
	about: aboutCalendar, done: "read", tell: tellEvents,
	example: "what is on tomorrow?",
}}

func aboutCalendar(json.RawMessage) string { return "your calendar" }

var (
	askFree = lazyregexp.New(`(?i)\b(?:free|busy|available)\b`)
	askWhen = lazyregexp.New(`(?i)^` + courtesy + `(?:when|(?:at\s+)?what\s+time)\b|\b(?:next|` +
		`upcoming)\s+(?:` + meetings + `)\b|\bnext\W*$`)
	someWeek = lazyregexp.New(`(?i)\b(?:(this|next|my|our)\s+(day|week|weekend)|(?:the|on\s+the|` +
		`at\s+the)\s+(weekend))\b`)
	withWhom  = lazyregexp.New(`(?i)\bwith\s+(\S.*)$`)
	lookWords = lazyregexp.New(`(?i)(?:\bwhat['’]s\b|\bwhen['’]s\b|\b(?:what|whats|is|are|am|there|how|many|` +
		`which|time|like|looking|on|in|planned|` +
		`scheduled|happening|going|do|does|i|we|have|got|when|my|our|me|us|show|list|read|check|look|up|at|into|` +
		`see|any|anything|` +
		`something|else|other|next|upcoming|free|busy|available|for|again|calendars?|` + days + `|` + meetings + `)\b)`)
)

// look returns the period that a question is about.
func look(a *ask) (any, string) {
	if a.tool(listTool) == nil {
		return nil, ""
	}
	said := a.text
	if a.reply.raw != "" {
		said = said.and(a.reply)
	}
	p := &periodArgs{}
	week := someWeek.FindStringSubmatch(said.mask)
	for _, m := range someWeek.FindAllStringIndex(said.mask, -1) {
		said = said.blank(m[0], m[1])
	}
	w := findWhen(said, a.now)
	if a.reply.raw != "" {
		w = findWhen(a.reply, a.now)
	}
	if _, timed := a.slots["when"]; timed && !w.some() && week == nil {
		return nil, ""
	}
	left := w.leftover
	if m := withWhom.FindStringSubmatchIndex(left.mask); m != nil {
		p.Query = plainWords(left.raw[m[2]:m[3]])
		left = left.blank(m[0], m[1])
	}
	left.mask = lookWords.ReplaceAllString(left.mask, " ")
	if askWhen.MatchString(said.mask) && p.Query == "" {
		p.Query = plainWords(left.mask)
		left.mask = ""
	}
	switch {
	case w.repeats:
		return p, "I can look at one period at a time. Please give one day, or a week."
	case w.doubt() != "":
		return p, w.doubt()
	case remains(left.mask):
		return p, unread(left.mask)
	}
	p.set(w, week, w.part, askWhen.MatchString(said.mask), a.now)
	return p, ""
}

// set sets the times of the period: the named times, a week, or the next days.
func (p *periodArgs) set(w when, week []string, part string, next bool, now time.Time) {
	e := eventArgs{}
	if w.start != nil || w.in > 0 {
		w.fill(&e, now)
		p.From, p.To, p.TimeZone = e.Start, e.End, e.TimeZone
		return
	}
	loc := w.location(now)
	today := dayOf(now.In(loc))
	first, last := today, today.next(6)
	from, to := 0, 24*60
	switch {
	case len(w.days) > 0:
		first, last = w.days[0], w.days[len(w.days)-1]
	case week != nil:
		first, last = weekOf(strings.ToLower(week[1]) == "next", week[2]+week[3], today)
	case part != "":
		last = today
	case next:
		last = today.next(29)
	}
	if len(w.days) > 0 || part != "" && last == today {
		from, to = hours(part)
	}
	if next && first == today {
		at := now.In(loc)
		from = 60*at.Hour() + at.Minute()
	}
	p.TimeZone = cmp.Or(w.zone, map[bool]string{true: loc.String()}[loc.String() != "Local"])
	p.From = stamp(first, from, p.TimeZone, loc)
	p.To = stamp(last, to, p.TimeZone, loc)
}

// hours returns the minutes at which a part of a day begins and ends.
func hours(part string) (from, to int) {
	part = strings.ToLower(part)
	switch {
	case strings.HasSuffix(part, "morning"):
		return 0, 12 * 60
	case strings.HasSuffix(part, "afternoon"):
		return 12 * 60, 18 * 60
	case part != "":
		return 18 * 60, 24 * 60
	}
	return 0, 24 * 60
}

// weekOf returns the days of this week from today on, the days of next week, or the weekend of one of them.
func weekOf(next bool, kind string, today day) (first, last day) {
	sunday := today.next((7 - int(today.weekday())) % 7)
	first, last = today, sunday
	if strings.EqualFold(kind, "day") {
		return today, today
	}
	if next {
		first, last = sunday.next(1), sunday.next(7)
	}
	if saturday := last.next(-1); strings.EqualFold(kind, "weekend") && (next || today.before(saturday)) {
		first = saturday
	}
	return first, last
}

func (d day) weekday() time.Weekday {
	return time.Date(d.year, d.month, d.day, 0, 0, 0, 0, time.UTC).Weekday()
}

func (d day) before(e day) bool { return d.String() < e.String() }

var noWord = lazyregexp.New(`[^\pL\pN@._+'’-]+`)

// plainWords returns the search words of a text, without signs, articles and courtesies.
func plainWords(s string) string {
	s = strings.Trim(noWord.ReplaceAllString(s, " "), " .'’-")
	return strings.TrimSpace(article.ReplaceAllString(s+" ", ""))
}

var article = lazyregexp.New(`(?i)^(?:(?:the|an?|my|our|his|her|their|some|any|please)\s+)+`)
