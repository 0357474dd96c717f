package calendar

import (
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/base/timezone"
)

// span is the time of an event. For all-day events it has dates: midnight UTC, and the end is the day after the
// event.
type span struct {
	start, end time.Time
	allDay     bool
}

var (
	// time.Parse accepts more, such as a comma as the decimal point.
	moment = lazyregexp.New(`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.0{1,9})?(Z|[+-](0\d|1[0-4]):[0-5]\d)$`)
	clock  = lazyregexp.New(`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}$`)
	day    = lazyregexp.New(`^\d{4}-\d{2}-\d{2}$`)
)

func parseSpan(a Args) (s span, err error) {
	zone, err := loadZone(a.TimeZone)
	if err != nil {
		return s, err
	}
	s.allDay = a.AllDay
	if s.start, err = parseTime("start", a.Start, a.AllDay, zone); err != nil {
		return s, err
	}
	if a.End == "" && !a.AllDay { // complete adds it
		s.end = s.start.Add(time.Second)
		return s, nil
	}
	s.end, err = parseTime("end", a.End, a.AllDay, zone)
	return s, err
}

// loadZone returns the zone, or nil if the name is empty.
func loadZone(name string) (*time.Location, error) {
	if name == "" {
		return nil, nil
	}
	return timezone.Load("timeZone", name)
}

func parseTime(field, s string, allDay bool, zone *time.Location) (time.Time, error) {
	switch {
	case allDay && !day.MatchString(s):
		return time.Time{}, fault.Invalid(field, "an all-day event needs a date such as 2027-01-05")
	case allDay:
		return parsed(field, time.DateOnly, s)
	case moment.MatchString(s):
		t, err := parsed(field, time.RFC3339, s)
		if zone != nil {
			t = t.In(zone)
		}
		return t, err
	case clock.MatchString(s) && zone != nil:
		t, err := parsed(field, "2006-01-02T15:04:05", s)
		if err != nil {
			return t, err
		}
		return inZone(field, t, zone)
	case clock.MatchString(s):
		return time.Time{}, fault.Invalid(field, "a time without an offset needs timeZone")
	case day.MatchString(s):
		return time.Time{}, fault.Invalid(field, "a date without a time needs allDay")
	}
	return time.Time{}, fault.Invalid(field, "must be a time such as 2027-01-05T10:00:00+01:00")
}

func parsed(field, layout, s string) (time.Time, error) {
	t, err := time.Parse(layout, s)
	if err != nil {
		return t, fault.Invalid(field, "no such date or time")
	}
	return t, nil
}

// inZone interprets the clock reading of t in the zone. In spring an hour is missing, and time.Date would move the
// event silently. In autumn an hour occurs twice, and the first one is used, before the clocks go back.
func inZone(field string, t time.Time, zone *time.Location) (time.Time, error) {
	found := occurrences(t, zone)
	if len(found) == 0 {
		return time.Time{}, fault.Invalid(field,
			"this time does not exist in the time zone: the clocks skip it")
	}
	return found[0], nil
}

// occurrences returns the instants, in order, at which clocks in the zone show the clock reading of t.
func occurrences(t time.Time, zone *time.Location) []time.Time {
	wall := time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
	var found []time.Time
	// No zone changes its offset twice within two days, so the offsets of the day before and the day after are the only
	// candidates.
	for _, near := range []time.Duration{-24 * time.Hour, 24 * time.Hour} {
		_, offset := wall.Add(near).In(zone).Zone()
		at := wall.Add(-time.Duration(offset) * time.Second).In(zone)
		if at.Format(time.DateTime) == wall.Format(time.DateTime) && (len(found) == 0 || !found[0].Equal(at)) {
			found = append(found, at)
		}
	}
	if len(found) == 2 && found[1].Before(found[0]) {
		found[0], found[1] = found[1], found[0]
	}
	return found
}

func (s span) check(now time.Time) error {
	switch {
	case !s.end.After(s.start) && s.allDay:
		return fault.Invalid("end",
			"the end of an all-day event is the first day after it, and must be later than its start")
	case !s.end.After(s.start):
		return fault.Invalid("end", "the end must be later than the start")
	case s.end.Sub(s.start) > MaxLength:
		return fault.Invalid("end", "an event may last 14 days at most")
	case s.start.Before(now.Add(-MaxPast)):
		return fault.Invalid("start", "this is more than a year ago")
	case s.start.After(now.Add(MaxFuture)):
		return fault.Invalid("start", "this is more than ten years ahead")
	}
	return nil
}

func (s span) format() (start, end string) {
	layout := time.RFC3339
	if s.allDay {
		layout = time.DateOnly
	}
	return s.start.Format(layout), s.end.Format(layout)
}
