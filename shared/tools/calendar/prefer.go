package calendar

import (
	"time"

	"github.com/countersign-run/countersign/shared/agent/preference"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// complete adds the end of an event that has none, by the length that the user prefers.
func complete(a Args, minutes int, now time.Time) (Args, error) {
	a.Lasts = ""
	if a.End != "" {
		return a, nil
	}
	if minutes == 0 {
		return a, fault.Invalid("end", "say when the event ends: the user has set no length of meetings")
	}
	a.Lasts = preference.Minutes(minutes)
	return normalize(a.lasting(time.Duration(minutes)*time.Minute), now)
}

// lasting returns the event with an end after the length.
func (a Args) lasting(length time.Duration) Args {
	if s, err := parseSpan(a); err == nil {
		s.end = s.start.Add(length)
		_, a.End = s.format()
	}
	return a
}

// revise keeps the length of an event if the user's edits leave out its end. A time that the user edited is the user's.
func revise(before, edited Args) Args {
	was, err := parseSpan(before)
	if edited.End == "" && !edited.AllDay && err == nil {
		edited = edited.lasting(was.end.Sub(was.start))
	}
	if edited.Lasts = before.Lasts; edited.Start != before.Start || edited.End != before.End {
		edited.Lasts = ""
	}
	return edited
}

// outsideHours returns a warning if one of the first dates of an event is not within the working hours.
func outsideHours(a Args, hours *preference.WorkingHours, now time.Time) []tool.Warning {
	dates, err := datesOf(a, now)
	if hours == nil || a.AllDay || err != nil {
		return nil
	}
	for _, d := range dates {
		if hours.Contain(d.start, d.end) {
			continue
		}
		w := tool.Warning{Text: "This is outside of your working hours: " + hours.String() + ".", Asks: true}
		if len(dates) > 1 {
			day := tool.DayOf(d.start)
			w.Text, w.Moments = "On "+day.Text+", this is outside of your working hours: "+hours.String()+".",
				[]tool.Moment{day}
		}
		return []tool.Warning{w}
	}
	return nil
}
