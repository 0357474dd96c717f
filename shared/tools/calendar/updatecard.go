package calendar

import (
	"cmp"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
)

// previewUpdate shows each part that changes as it was and as it becomes, and who gets an e-mail.
func previewUpdate(a UpdateArgs, now time.Time) tool.Preview {
	was, is := a.before(), a.after()
	v := view{Preview: tool.Preview{Title: "Change a calendar event" + guestsIn(len(is.Attendees))}}
	v.AddLine("Event", cmp.Or(was.Summary, "(no title)"))
	if a.Before == nil {
		v.AddField("Id", a.EventID)
	} else {
		v.which(a.Before.Repeats, a.Start+a.End != "")
	}
	v.becomes("Title", was.Summary, is.Summary, a.Summary != "", v.AddLine)
	v.moves(a, was, is, now)
	v.becomes("Location", was.Location, is.Location, a.Location != nil, v.AddLine)
	v.becomes("Description", was.Description, is.Description, a.Description != nil, v.AddText)
	v.links(valueOf(a.Location) + "\n" + valueOf(a.Description))
	v.AddAddresses("Newly invited", a.Add)
	v.AddAddresses("No longer invited", a.Remove)
	v.AddAddresses("Stay invited", slices.DeleteFunc(slices.Clone(is.Attendees),
		func(at string) bool { return slices.ContainsFunc(a.Add, same(at)) }))
	v.told(a, is)
	return v.Preview
}

// which says what a recurring event's ID names.
func (v *view) which(r repeats, moves bool) {
	switch r {
	case wholeSeries:
		v.AddField("Which", "The whole series: all repetitions, past ones included")
		if moves {
			v.Warn("Google may reset repetitions that were moved one by one.")
		}
	case oneRepetition:
		v.AddField("Which", "One repetition; the others stay as they are")
	}
}

// becomes shows a text before and after a change.
func (v *view) becomes(label, was, is string, given bool, add func(label, s string)) {
	if !given {
		return
	}
	add(label+" was", cmp.Or(was, "(none)"))
	add(label+" becomes", cmp.Or(is, "(none)"))
}

// moves shows the times before and after a change, or the time that stays.
func (v *view) moves(a UpdateArgs, was, is Args, now time.Time) {
	if a.Start+a.End == "" {
		if a.Before != nil {
			v.ends("Starts", "Ends", was)
		}
		return
	}
	if a.Before != nil {
		v.ends("Start was", "End was", was)
	}
	v.ends("Start becomes", "End becomes", is)
	series := a.Before != nil && a.Before.Repeats == wholeSeries
	if s, err := parseSpan(is); err == nil && s.start.Before(now) && !series {
		v.Warn("The event begins in the past.")
	}
}

// ends shows both ends of an event under their labels. The end of an all-day event is its last day.
func (v *view) ends(start, end string, a Args) {
	s, err := parseSpan(a)
	switch {
	case err != nil:
		v.AddLine(start, a.Start)
		v.NameMoments(tool.StampMoment(a.Start)...)
		v.AddLine(end, a.End)
		v.NameMoments(tool.StampMoment(a.End)...)
	case a.AllDay:
		first, last := tool.DayOf(s.start), tool.DayOf(s.end.AddDate(0, 0, -1))
		v.dated(start, first.Text, first)
		v.dated(end, last.Text+" (last day)", last)
	default:
		v.moment(start, s.start, a.TimeZone)
		v.moment(end, s.end, a.TimeZone)
		v.doubled("start", s.start, a.TimeZone)
		v.doubled("end", s.end, a.TimeZone)
	}
}

// told says who gets an e-mail.
func (v *view) told(a UpdateArgs, is Args) {
	if len(is.Attendees)+len(a.Remove) == 0 && a.SendUpdates == "all" {
		return
	}
	v.AddField("Notified", map[string]string{
		"all":          "Google e-mails the change to everyone invited, and to those no longer invited",
		"externalOnly": "Google e-mails the change to those who do not use Google Calendar",
		"none":         "No one gets an e-mail; the calendars of those invited show the change",
	}[a.SendUpdates])
}
