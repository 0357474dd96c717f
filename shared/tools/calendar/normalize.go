package calendar

import (
	"strings"
	"time"
	"unicode"

	"github.com/countersign-run/countersign/shared/base/address"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// normalize checks what the schema cannot express, and writes each time with its offset, so that the approved bytes
// have one meaning. An event without an end has none until complete adds it.
func normalize(a Args, now time.Time) (Args, error) {
	if a.CalendarID != "" && a.CalendarID != "primary" {
		e := fault.New(fault.Policy, fault.CodeForbidden, "Events are made in your own primary calendar only.")
		e.Field = "calendarId"
		return a, e
	}
	a.CalendarID = ""
	err := normalizeTexts(&a)
	if err != nil {
		return a, err
	}
	if strings.TrimSpace(a.Summary) == "" {
		return a, fault.Invalid("summary", "the event needs a title")
	}
	if a.Attendees, err = address.List("attendees", a.Attendees, MaxAttendees); err != nil {
		return a, err
	}
	switch {
	case len(a.Attendees) == 0:
		a.SendUpdates = "" // without attendees there is no one to notify
	case a.SendUpdates == "":
		a.SendUpdates = "all"
	}
	s, err := parseSpan(a)
	if err != nil {
		return a, err
	}
	if err := s.check(now); err != nil {
		return a, err
	}
	ends := a.End != ""
	if a.Start, a.End = s.format(); !ends {
		a.End = ""
	}
	if len(a.Recurrence) == 0 {
		return a, nil
	}
	if !a.AllDay && a.TimeZone == "" {
		return a, fault.Invalid("timeZone",
			"a recurring event needs a time zone, or its time would move with daylight saving")
	}
	a.Recurrence[0] = spellRule(a.Recurrence[0])
	_, err = expand(a.Recurrence[0], s.start, a.AllDay)
	return a, err
}

func normalizeTexts(a *Args) error {
	a.Description = strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(a.Description)
	for _, t := range []struct {
		field, value, allowed string
		most                  int
	}{{"summary", a.Summary, "", MaxSummary}, {"location", a.Location, "", MaxLocation},
		{"description", a.Description, "\n\t", MaxDescription}} {
		if len(t.value) > t.most {
			return fault.Invalid(t.field, "the limit is %d octets", t.most)
		}
		if strings.ContainsFunc(t.value,
			func(r rune) bool { return unicode.IsControl(r) && !strings.ContainsRune(t.allowed, r) }) {
			return fault.Invalid(t.field, "control characters are not allowed")
		}
	}
	return nil
}
