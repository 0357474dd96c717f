package calendar

import (
	"fmt"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/timezone"
	"github.com/countersign-run/countersign/shared/base/visible"
)

// preview shows the event as the calendar will show it, and the guests who will get an e-mail.
func preview(a Args, now time.Time) tool.Preview {
	v := view{Preview: tool.Preview{Title: "Create a calendar event"}}
	switch n := len(a.Attendees); {
	case n == 1:
		v.Title = "Create a calendar event with 1 guest"
	case n > 1:
		v.Title = fmt.Sprintf("Create a calendar event with %d guests", n)
	}
	v.AddLine("Title", a.Summary)
	v.times(a)
	if s, err := parseSpan(a); err == nil && s.start.Before(now) {
		v.Warn("The event begins in the past.")
	}
	v.people(a)
	v.texts(a)
	if a.Meet {
		v.AddField("Video call", "A Google Meet link will be added")
	}
	return v.Preview
}

// view builds a preview.
type view struct{ tool.Preview }

// times shows the event's times in its time zone. The arguments are normalised, so the times parse.
func (v *view) times(a Args) {
	s, err := parseSpan(a)
	if err != nil {
		v.dated("Time", a.Start+" to "+a.End, append(tool.StampMoment(a.Start), tool.StampMoment(a.End)...)...)
		return
	}
	if a.AllDay {
		v.days(s)
	} else {
		v.moment("Starts", s.start, a.TimeZone)
		v.moment("Ends", s.end, a.TimeZone)
		if a.Lasts != "" {
			v.AddField("Length, from your preferences", a.Lasts)
		}
		v.doubled("start", s.start, a.TimeZone)
		v.doubled("end", s.end, a.TimeZone)
	}
	if len(a.Recurrence) > 0 {
		v.repeats(a, s)
	}
}

func (v *view) days(s span) {
	first, last := tool.DayOf(s.start), tool.DayOf(s.end.AddDate(0, 0, -1))
	if first == last {
		v.dated("Day", first.Text, first)
		return
	}
	v.dated("Days", first.Text+" to "+last.Text, first, last)
}

// dated adds a value with the instants that it names.
func (v *view) dated(label, value string, moments ...tool.Moment) {
	v.AddField(label, value)
	v.NameMoments(moments...)
}

func (v *view) moment(label string, t time.Time, zone string) {
	m := tool.MomentOf(t, zone)
	v.Fields = append(v.Fields, tool.Field{Label: label, Value: m.Text, At: m.At, Moments: []tool.Moment{m}})
}

func (v *view) doubled(what string, t time.Time, zone string) {
	loc, err := loadZone(zone)
	if err != nil || loc == nil || len(occurrences(t, loc)) < 2 {
		return
	}
	v.Warn("On that day, clocks in %s show the time of the %s twice. This is the one at UTC%s.", zone, what,
		t.Format("-07:00"))
}

func (v *view) repeats(a Args, s span) {
	rule, _ := visible.Line(a.Recurrence[0])
	all, err := expand(a.Recurrence[0], s.start, a.AllDay)
	if err != nil {
		v.AddField("Repeats", rule)
		return
	}
	last := tool.DayOf(all.dates[len(all.dates)-1])
	v.dated("Repeats", all.words(last.Text)+"\n"+rule, last)
	if all.extra {
		v.Warn("The rule does not include the first day. The event takes place on that day too: %d times in all.",
			len(all.dates))
	}
}

func (v *view) people(a Args) {
	if len(a.Attendees) == 0 {
		return
	}
	v.AddAddresses("Invited", a.Attendees)
	v.AddField("Invitations", map[string]string{
		"all":          "Google e-mails an invitation to everyone invited",
		"externalOnly": "Google e-mails an invitation to those who do not use Google Calendar",
		"none":         "No invitation is mailed; the event appears in the calendars of those invited",
	}[a.SendUpdates])
}

// texts shows the location and the description, with the targets of their links.
func (v *view) texts(a Args) {
	if a.Location != "" {
		v.AddLine("Location", a.Location)
	}
	if a.Description != "" {
		v.AddText("Description", a.Description)
	}
	v.links(a.Location + "\n" + a.Description)
}

// links shows the targets of the description's links, because a calendar displays the description as HTML.
func (v *view) links(s string) {
	var targets []string
	for _, l := range visible.Links(s) {
		targets = append(targets, l.Target)
	}
	if len(targets) > 0 {
		v.AddField("Links lead to", strings.Join(targets, "\n"))
	}
}

// begins describes when an event begins.
func begins(a Args) string {
	switch s, err := parseSpan(a); {
	case err != nil:
		return a.Start
	case a.AllDay:
		return tool.DayOf(s.start).Text
	default:
		return timezone.Clock(s.start, a.TimeZone)
	}
}

func summary(a Args) string {
	s := fmt.Sprintf("Created the event “%s” on %s", titleOf(a), begins(a))
	if len(a.Attendees) > 0 {
		s += " with " + strings.Join(a.Attendees, ", ")
	}
	return s + "."
}
