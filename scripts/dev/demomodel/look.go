package demomodel

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"
)

const listTool = "calendar_events_list"

// periodArgs holds the arguments of calendar_events_list, times as [eventArgs] has them.
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

// lookRules know the questions about what is in the calendar.
var lookRules = []rule{{
	phrases: phrases("(what|what's|whats|anything|is anything|is there anything) [is] [there] "+
		"(on|in|planned|scheduled|happening) [{rest}]",
		"(what do i have|what do we have|what have i|what have i got|do i have|have i got|when am i|am i|are we) "+
			"[{rest}]",
		"(when is|when's|when are) (my|our|the) {rest}",
		"(show|list|read|check|look [up|at|into]|see) [me] [my|our|the] [next|upcoming] "+
			"("+days+"|"+meetings+") [{rest}]",
		"(any|are there any|is there any) [other] ("+meetings+") [{rest}]"),
	call: look, tool: listTool, questions: true, joins: true,
	about: aboutCalendar, done: "read", tell: tellEvents,
	example: "what is on tomorrow?",
}}

func aboutCalendar(json.RawMessage) string { return "your calendar" }

var (
	askFree   = regexp.MustCompile(`(?i)\b(?:free|busy|available)\b`)
	askWhen   = regexp.MustCompile(`(?i)^` + courtesy + `when\b|\b(?:next|upcoming)\s+(?:` + meetings + `)\b`)
	someWeek  = regexp.MustCompile(`(?i)\b(?:(this|next)\s+(week|weekend)|(?:the|on\s+the|at\s+the)\s+(weekend))\b`)
	withWhom  = regexp.MustCompile(`(?i)\bwith\s+(\S.*)$`)
	lookWords = regexp.MustCompile(`(?i)(?:\bwhat['’]s\b|\bwhen['’]s\b|\b(?:what|whats|is|are|am|there|on|in|planned|` +
		`scheduled|happening|going|do|does|i|we|have|got|when|my|our|me|us|show|list|read|check|look|up|at|into|see|any|anything|` +
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
	p.set(w, week, partOfDay.FindString(said.mask), askWhen.MatchString(said.mask), a.now)
	return p, ""
}

// set sets the times of the period: those that are named, a week, or the days to come.
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
	p.To = stamp(last.next(to/(24*60)), to%(24*60), p.TimeZone, loc)
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

// weekOf returns the days of this week from today on, or of the next one, or of the weekend of either.
func weekOf(next bool, kind string, today day) (first, last day) {
	sunday := today.next((7 - int(today.weekday())) % 7)
	first, last = today, sunday
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

var noWord = regexp.MustCompile(`[^\pL\pN@._+'’-]+`)

// plainWords returns what a text says without signs, articles and courtesies, as words to search for.
func plainWords(s string) string {
	s = strings.Trim(noWord.ReplaceAllString(s, " "), " .'’-")
	return strings.TrimSpace(article.ReplaceAllString(s+" ", ""))
}

var article = regexp.MustCompile(`(?i)^(?:(?:the|an?|my|our|his|her|their|some|any|please)\s+)+`)

// events is what calendar_events_list returns.
type events struct {
	TimeZone string
	Events   []struct {
		Title, Start, End, Location string
		AllDay, Free                bool
	}
	More bool
}

// maxLines is how many events or mails an answer names.
const maxLines = 20

// tellEvents answers the question from what the calendar has. Titles are quoted: they are strangers' words.
func tellEvents(d *dialogue, s step) string {
	var p periodArgs
	var got events
	if !s.reads(&p, &got) {
		return "The calendar's answer is unclear."
	}
	zone := d.now.Location()
	if loc, err := time.LoadLocation(got.TimeZone); err == nil {
		zone = loc
	}
	question := d.asked()
	free, next := askFree.MatchString(question), askWhen.MatchString(question)
	period := p.words(zone)
	if p.Query != "" {
		period = "about “" + excerpt(p.Query, 80) + "” " + period
	}
	var lines []string
	for _, e := range got.Events {
		if free && e.Free || next && !e.AllDay && p.at(e.Start, zone).Before(p.at(p.From, zone)) { // under way
			continue
		}
		line := "- " + span(e.Start, e.End, e.AllDay, zone) + " “" + excerpt(e.Title, 80) + "”"
		if e.Location != "" {
			line += " (" + excerpt(e.Location, 60) + ")"
		}
		lines = append(lines, line)
	}
	said := "In your calendar " + period + ":"
	switch {
	case len(lines) == 0 && free:
		return "You are free " + period + ": nothing in your calendar takes that time."
	case len(lines) == 0:
		return "There is nothing in your calendar " + period + "."
	case next:
		lines, got.More = lines[:1], false
		said = "The next one " + period + " is:"
	case free:
		said = "You are not free " + period + ". There is:"
	}
	if len(lines) > maxLines {
		lines, got.More = lines[:maxLines], true
	}
	if got.More {
		lines = append(lines, "- and more")
	}
	if zone.String() != d.now.Location().String() {
		said += " (times of " + zone.String() + ")"
	}
	return said + "\n" + strings.Join(lines, "\n")
}

const longDate = "Monday, 2 January 2006"

// words says which period it is.
func (p periodArgs) words(zone *time.Location) string {
	from, to := p.at(p.From, zone), p.at(p.To, zone)
	last := to.Add(-time.Minute)
	whole := from.Hour()+from.Minute()+to.Hour()+to.Minute() == 0
	switch {
	case from.Format(time.DateOnly) != last.Format(time.DateOnly):
		return "from " + from.Format(longDate) + ", to " + last.Format(longDate)
	case whole:
		return "on " + from.Format(longDate)
	}
	return fmt.Sprintf("on %s, %s–%s", from.Format(longDate), from.Format("15:04"), to.Format("15:04"))
}

// at reads a time of the period.
func (p periodArgs) at(s string, zone *time.Location) time.Time {
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t.In(zone)
	}
	t, _ := time.ParseInLocation("2006-01-02T15:04:05", s, zone) // it is the model's own
	return t
}

// span says when an event is.
func span(start, end string, allDay bool, zone *time.Location) string {
	if allDay {
		first, err := time.Parse(time.DateOnly, start)
		after, errAfter := time.Parse(time.DateOnly, end)
		if err != nil || errAfter != nil {
			return "all day"
		}
		if last := after.AddDate(0, 0, -1); last.After(first) {
			return first.Format("Mon 2 Jan") + "–" + last.Format("Mon 2 Jan") + ", all day,"
		}
		return first.Format("Mon 2 Jan") + ", all day,"
	}
	from, err := time.Parse(time.RFC3339, start)
	to, errTo := time.Parse(time.RFC3339, end)
	if err != nil || errTo != nil {
		return excerpt(start, 30)
	}
	from, to = from.In(zone), to.In(zone)
	layout := "15:04"
	if from.Format(time.DateOnly) != to.Format(time.DateOnly) {
		layout = "Mon 2 Jan 15:04"
	}
	return from.Format("Mon 2 Jan 15:04") + "–" + to.Format(layout)
}
