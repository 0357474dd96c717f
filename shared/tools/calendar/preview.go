package calendar

import (
	"fmt"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/address"
	"github.com/countersign-run/countersign/shared/timezone"
	"github.com/countersign-run/countersign/shared/tool"
	"github.com/countersign-run/countersign/shared/visible"
)

const longDay = "Monday, 2 January 2006"

// preview shows the event as the calendar will show it, and who will be mailed.
func preview(a Args, now time.Time) tool.Preview {
	v := view{Preview: tool.Preview{Title: "Create a calendar event"}}
	if n := len(a.Attendees); n > 0 {
		v.Title = fmt.Sprintf("Create a calendar event with %d invited", n)
	}
	v.text("Title", a.Summary, false)
	v.times(a, now)
	v.people(a)
	v.text("Location", a.Location, false)
	v.text("Description", a.Description, true)
	v.links(a.Location + "\n" + a.Description)
	if a.Meet {
		v.field("Video call", "A Google Meet link will be added")
	}
	return v.Preview
}

// view is a preview under construction.
type view struct{ tool.Preview }

func (v *view) warn(format string, args ...any) {
	v.Warnings = append(v.Warnings, fmt.Sprintf(format, args...))
}

func (v *view) field(label, value string) {
	v.Fields = append(v.Fields, tool.Field{Label: label, Value: value, Long: strings.Contains(value, "\n")})
}

func (v *view) text(label, s string, long bool) {
	if s == "" {
		return
	}
	show := visible.Line
	if long {
		show = visible.Text
	}
	shown, hidden := show(s)
	v.Fields = append(v.Fields, tool.Field{Label: label, Value: shown, Long: long})
	if hidden {
		v.warn("%s: there are characters that cannot be seen or that change the reading direction. They are written "+
			"out as ⟨U+…⟩.", label)
	}
	for _, w := range visible.Suspicious(s) {
		v.warn("%s: %s", label, w)
	}
}

// times shows the event's times in its time zone. The arguments were normalised, so they parse.
func (v *view) times(a Args, now time.Time) {
	s, err := parseSpan(a)
	if err != nil {
		v.field("Time", a.Start+" to "+a.End)
		return
	}
	if a.AllDay {
		v.days(s)
	} else {
		v.moment("Starts", s.start, a.TimeZone)
		v.moment("Ends", s.end, a.TimeZone)
		v.doubled("start", s.start, a.TimeZone)
		v.doubled("end", s.end, a.TimeZone)
	}
	if s.start.Before(now) {
		v.warn("The event begins in the past.")
	}
	if len(a.Recurrence) > 0 {
		v.repeats(a, s)
	}
}

func (v *view) days(s span) {
	first, last := s.start.Format(longDay), s.end.AddDate(0, 0, -1).Format(longDay)
	if first == last {
		v.field("Day", first)
		return
	}
	v.field("Days", first+" to "+last)
}

func (v *view) moment(label string, t time.Time, zone string) {
	v.Fields = append(v.Fields, tool.Field{Label: label, Value: timezone.Clock(t, zone), At: t.Format(time.RFC3339)})
}

func (v *view) doubled(what string, t time.Time, zone string) {
	loc, err := loadZone(zone)
	if err != nil || loc == nil || len(occurrences(t, loc)) < 2 {
		return
	}
	v.warn("The clocks of %s show the time of the %s twice on that day. The one at UTC%s is meant.", zone, what,
		t.Format("-07:00"))
}

func (v *view) repeats(a Args, s span) {
	rule, _ := visible.Line(a.Recurrence[0])
	all, err := expand(a.Recurrence[0], s.start, a.AllDay)
	if err != nil {
		v.field("Repeats", rule)
		return
	}
	v.field("Repeats", all.words(longDay)+"\n"+rule)
	if !all.dates[0].Equal(s.start) {
		v.warn("The first day is not one that the rule names: the event takes place on that day, and on those " +
			"of the rule.")
	}
}

func (v *view) people(a Args) {
	if len(a.Attendees) == 0 {
		return
	}
	shown := make([]string, len(a.Attendees))
	for i, at := range a.Attendees {
		shown[i] = at
		if u, puny := address.Unicode(at); puny {
			u, _ = visible.Line(u)
			shown[i] = fmt.Sprintf("%s (shown as %s)", at, u)
			v.warn("The domain of %s is written with letters from outside ASCII. It may only look like one "+
				"that you know.", at)
		}
	}
	v.field("Invited", strings.Join(shown, "\n"))
	v.field("Invitations", map[string]string{
		"all":          "Google mails an invitation to everyone invited",
		"externalOnly": "Google mails an invitation to those who do not use Google Calendar",
		"none":         "No invitation is mailed; the event appears in the calendars of those invited",
	}[a.SendUpdates])
}

// links shows the targets of the description's links: a calendar displays the description as HTML.
func (v *view) links(s string) {
	var targets []string
	for _, l := range visible.Links(s) {
		targets = append(targets, l.Target)
	}
	if len(targets) > 0 {
		v.field("Links lead to", strings.Join(targets, "\n"))
	}
}

func summary(a Args) string {
	title, _ := visible.Line(a.Summary)
	s := fmt.Sprintf("Created the event “%s” on %s", title, a.Start)
	if len(a.Attendees) > 0 {
		s += " with " + strings.Join(a.Attendees, ", ")
	}
	return s + "."
}
