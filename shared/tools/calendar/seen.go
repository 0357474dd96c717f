package calendar

import (
	"cmp"
	"slices"
	"strings"

	calendarapi "google.golang.org/api/calendar/v3"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/visible"
)

// The limits for texts of an event that someone may have changed since it was created.
const (
	maxSeenGuests = 200
	maxSeenRules  = 20
)

// seen returns the event's present state in the form of the call that would create it, with the sendUpdates of the
// call that created it.
func seen(ev *calendarapi.Event, updates string) Args {
	a := Args{Summary: clip.Text(ev.Summary, MaxSummary), Location: clip.Text(ev.Location, MaxLocation),
		Description: clip.Text(ev.Description, MaxDescription), SendUpdates: updates}
	a.Start, a.TimeZone, a.AllDay = seenAt(ev.Start)
	a.End, _, _ = seenAt(ev.End)
	for _, at := range ev.Attendees[:min(len(ev.Attendees), maxSeenGuests)] {
		if !at.Organizer && at.Email != "" {
			a.Attendees = append(a.Attendees, clip.Text(at.Email, 254))
		}
	}
	for _, rule := range ev.Recurrence[:min(len(ev.Recurrence), maxSeenRules)] {
		a.Recurrence = append(a.Recurrence, clip.Text(rule, maxRule))
	}
	return a
}

// seenAt returns an end of an event in the form of [Args]. It omits a zone with a name that is unknown here, because
// the time has its offset.
func seenAt(at *calendarapi.EventDateTime) (moment, zone string, allDay bool) {
	if at == nil {
		return "", "", false
	}
	if _, err := loadZone(at.TimeZone); err == nil {
		zone = at.TimeZone
	}
	return cmp.Or(at.Date, at.DateTime), zone, at.Date != ""
}

// differences names the parts that differ between two states of an event and that matter to its user. It does not
// compare sendUpdates.
func differences(a, b Args) (names []string) {
	for _, part := range []struct {
		name string
		same bool
	}{
		{"title", strings.TrimSpace(a.Summary) == strings.TrimSpace(b.Summary)},
		{"time", sameTimes(a, b)},
		{"repetition", slices.Equal(a.Recurrence, b.Recurrence)},
		{"guests", slices.Equal(folded(a.Attendees), folded(b.Attendees))},
		{"location", strings.TrimSpace(a.Location) == strings.TrimSpace(b.Location)},
		{"description", strings.TrimSpace(a.Description) == strings.TrimSpace(b.Description)},
	} {
		if !part.same {
			names = append(names, part.name)
		}
	}
	return names
}

// changes tells the user the differences between two states of an event, with the old and the new values. A description
// is left out, because it can be long.
func changes(was, is Args) (all []tool.Warning) {
	values := map[string][2]string{
		"title": {was.Summary, is.Summary}, "time": {timesOf(was), timesOf(is)},
		"repetition": {strings.Join(was.Recurrence, " "), strings.Join(is.Recurrence, " ")},
		"guests":     {strings.Join(was.Attendees, ", "), strings.Join(is.Attendees, ", ")},
		"location":   {was.Location, is.Location},
	}
	for _, name := range differences(was, is) {
		if v, known := values[name]; known {
			all = append(all, tool.ChangedWarning(name, clip.Text(v[0], maxQuoted), clip.Text(v[1], maxQuoted)))
		}
	}
	return all
}

// timesOf returns the beginning and the end of an event in words.
func timesOf(a Args) string {
	s, err := parseSpan(a)
	if err != nil {
		return a.Start + " – " + a.End
	}
	first, last := tool.DayOf(s.start).Text, tool.DayOf(s.end).Text
	switch {
	case s.allDay:
		return first + ", all day"
	case first == last:
		return first + ", " + s.start.Format("15:04") + "–" + s.end.Format("15:04")
	}
	return first + ", " + s.start.Format("15:04") + "–" + last + ", " + s.end.Format("15:04")
}

// maxQuoted is the maximum size of a value in a warning, in bytes.
const maxQuoted = 120

// sameTimes compares instants, because a calendar may write them in another zone.
func sameTimes(a, b Args) bool {
	s, errA := parseSpan(a)
	t, errB := parseSpan(b)
	if errA != nil || errB != nil {
		return a.Start == b.Start && a.End == b.End
	}
	return s.allDay == t.allDay && s.start.Equal(t.start) && s.end.Equal(t.end)
}

// folded returns the addresses sorted and in lower case.
func folded(addresses []string) (all []string) {
	for _, a := range addresses {
		all = append(all, strings.ToLower(a))
	}
	slices.Sort(all)
	return all
}

// titleOf returns the event's title with hidden characters written out.
func titleOf(a Args) string {
	title, _ := visible.Line(a.Summary)
	return title
}
