package demomodel

import (
	"fmt"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// events holds the result of calendar_events_list.
type events struct {
	TimeZone string
	Events   []struct {
		Title, Start, End, Location string
		AllDay, Free                bool
	}
	More bool
}

// maxLines is the maximum number of events or e-mails in an answer.
const maxLines = 20

// tellEvents answers the question from the calendar's events. It quotes titles, because strangers may have written
// them.
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

// asked returns the user's last question, without those that continue from it.
func (d *dialogue) asked() string {
	n := len(d.said) - 1
	for n > 0 && goesOn.MatchString(d.said[n]) {
		n--
	}
	return d.said[n]
}

var goesOn = lazyregexp.New(`(?i)^\W*(?:and|or|then|what\s+about|how\s+about)\b`)

// words describes the period.
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

// span describes the time of an event.
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
