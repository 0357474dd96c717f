package calendar

import (
	"cmp"
	"slices"
	"strings"
	"time"

	calendarapi "google.golang.org/api/calendar/v3"

	"github.com/countersign-run/countersign/shared/base/fault"
)

// about returns the arguments with the event as it is now, or why the call cannot change the event.
func (u *updater) about(a UpdateArgs, ev *calendarapi.Event) (UpdateArgs, error) {
	if err := changeable(ev); err != nil {
		return a, err
	}
	a.Before = &Before{ETag: ev.Etag, Event: seen(ev, ""), Repeats: repeatsOf(ev)}
	is, err := a.merged()
	if err != nil {
		return a, err
	}
	if a.Start+a.End != "" {
		s, err := parseSpan(is)
		if err != nil {
			return a, err
		}
		if err := s.check(u.now()); err != nil {
			return a, err
		}
		a.Start, a.End = is.Start, is.End
	}
	if len(differences(a.Before.Event, is)) == 0 {
		return a, fault.New(fault.Validation, "nothing_changes", "The event is already like this. Nothing changes.")
	}
	return a, nil
}

func repeatsOf(ev *calendarapi.Event) repeats {
	switch {
	case ev.RecurringEventId != "":
		return oneRepetition
	case len(ev.Recurrence) > 0:
		return wholeSeries
	}
	return ""
}

// changeable returns why the user cannot change the event, or nil.
func changeable(ev *calendarapi.Event) error {
	refused := func(why string) error { return fault.New(fault.Policy, fault.CodeForbidden, "%s", why) }
	switch {
	case ev.Organizer != nil && !ev.Organizer.Self && !ev.GuestsCanModify:
		return refused("Only the organizer can change this event.")
	case ev.Locked || ev.EventType != "" && ev.EventType != "default":
		return refused("Google made this event for its user, and it can be changed only in Google Calendar.")
	case ev.AttendeesOmitted || len(ev.Attendees) > maxSeenGuests:
		return refused("The event has too many guests to be shown. Please change it in Google Calendar.")
	}
	return nil
}

// before returns the event as it was shown, or an empty one.
func (a UpdateArgs) before() Args {
	if a.Before == nil {
		return Args{}
	}
	return a.Before.Event
}

// after returns the event as the call makes it, as far as that is known.
func (a UpdateArgs) after() Args {
	is, err := a.merged()
	if err != nil { // only before the arguments are completed
		is.Start, is.End = a.Start, a.End
	}
	return is
}

// merged returns the event as the call makes it.
func (a UpdateArgs) merged() (Args, error) {
	is := a.before()
	is.SendUpdates, is.Summary = a.SendUpdates, cmp.Or(a.Summary, is.Summary)
	if a.Location != nil {
		is.Location = *a.Location
	}
	if a.Description != nil {
		is.Description = *a.Description
	}
	var err error
	if is.Attendees, err = a.guests(is.Attendees); err != nil || a.Start+a.End == "" {
		return is, err
	}
	return a.times(is)
}

// guests returns the invited addresses after the change.
func (a UpdateArgs) guests(invited []string) ([]string, error) {
	invited = slices.Clone(invited)
	for _, at := range a.Remove {
		if !slices.ContainsFunc(invited, same(at)) {
			return invited, fault.Invalid("removeAttendees", "the address is not among the guests")
		}
		invited = slices.DeleteFunc(invited, same(at))
	}
	for _, at := range a.Add {
		if slices.ContainsFunc(invited, same(at)) {
			return invited, fault.Invalid("addAttendees", "an address is already among the guests")
		}
		invited = append(invited, at)
	}
	return invited, nil
}

// same returns a function that compares addresses as Google does, without regard to case.
func same(address string) func(string) bool {
	return func(other string) bool { return strings.EqualFold(address, other) }
}

// times returns the event at its new times, in its own time zone. One time alone keeps the other, or the length.
func (a UpdateArgs) times(is Args) (Args, error) {
	was, known := parseSpan(is)
	is.AllDay = day.MatchString(cmp.Or(a.Start, a.End))
	if known != nil || is.AllDay != was.allDay {
		switch {
		case a.Start == "":
			return is, fault.Invalid("start", "an event that becomes, or no longer is, all-day needs start and end")
		case a.End == "":
			return is, fault.Invalid("end", "an event that becomes, or no longer is, all-day needs start and end")
		}
	}
	own, err := loadZone(is.TimeZone)
	if err != nil {
		return is, err
	}
	said, err := loadZone(cmp.Or(a.TimeZone, is.TimeZone))
	if err != nil {
		return is, err
	}
	s := was
	s.allDay = is.AllDay
	if a.Start != "" {
		if s.start, err = parseTime("start", a.Start, is.AllDay, said); err != nil {
			return is, err
		}
		s.end = s.start.Add(was.end.Sub(was.start))
	}
	if a.End != "" {
		if s.end, err = parseTime("end", a.End, is.AllDay, said); err != nil {
			return is, err
		}
	}
	if is.TimeZone == "" && !is.AllDay {
		is.TimeZone = a.TimeZone
	} else if own != nil && !is.AllDay {
		s.start, s.end = s.start.In(own), s.end.In(own)
	}
	is.Start, is.End = s.format()
	return is, a.checkSeries(was, s)
}

// checkSeries refuses another first day of a series: its rule would no longer fit, or earlier repetitions would vanish.
func (a UpdateArgs) checkSeries(was, is span) error {
	if a.Before == nil || a.Before.Repeats != wholeSeries {
		return nil
	}
	if was.allDay != is.allDay {
		return fault.Invalid("start", "a series stays all-day, or stays at a time of day")
	}
	if first := was.start.Format(time.DateOnly); is.start.Format(time.DateOnly) != first {
		return fault.Invalid("start", "the series begins on %s and keeps that day: give it with the new time of day, "+
			"or change one repetition by its own id", first)
	}
	return nil
}
