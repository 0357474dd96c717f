package calendar

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/teambition/rrule-go"
	"google.golang.org/api/googleapi"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/timezone"
	"github.com/countersign-run/countersign/shared/tools/internal/google"
)

// The limits of the search for events at the time of a call's event.
const (
	maxCompared  = 250                 // events of the calendar, in one answer
	maxDates     = 10                  // dates of a series, from now on
	maxAhead     = 92 * 24 * time.Hour // between the first of these dates and the last
	maxConflicts = 3                   // events that a card names
	maxRepeats   = 10000               // dates of a series that are computed
)

// conflictFields are the parts of Google's answer that are requested.
const conflictFields googleapi.Field = "kind,timeZone,nextPageToken," +
	"items(id,recurringEventId,summary,start,end,transparency,attendees(self,responseStatus))"

// slot returns what a yes to the time of an event rests on: the other events of the calendar at the first dates of a,
// with a warning for each. It makes one request. The event with the ID except, and its repetitions, do not count. The
// first dates are those after the proposal, also when the calendar is read again.
func (c client) slot(ctx context.Context, call tool.Call, a Args, except string, now time.Time) ([]tool.Precondition,
	error) {
	if !call.Since.IsZero() {
		now = call.Since
	}
	dates, err := datesOf(a, now)
	if err != nil || len(dates) == 0 {
		return nil, err
	}
	svc, err := c.service(ctx, call)
	if err != nil {
		return nil, err
	}
	from, to := dates[0].start, dates[len(dates)-1].end
	if a.AllDay { // the calendar's time zone is not known yet
		from, to = from.Add(-maxOffset), to.Add(maxOffset)
	}
	page, err := svc.Events.List("primary").SingleEvents(true).OrderBy("startTime").MaxAttendees(1).
		TimeMin(from.Format(time.RFC3339)).TimeMax(to.Format(time.RFC3339)).MaxResults(maxCompared).
		Fields(conflictFields).Context(ctx).Do()
	if err != nil {
		return nil, unlisted(google.Read(err))
	}
	zone, err := timezone.Load("timeZone", page.TimeZone)
	if err != nil {
		return nil, errUnreadable()
	}
	var busy []taken
	for _, ev := range page.Items {
		e, ok := eventOf(ev)
		if ok = ok && !e.Free && e.ID != except && (e.Series == "" || e.Series != except); !ok {
			continue
		}
		if s, err := parseSpan(Args{Start: e.Start, End: e.End, AllDay: e.AllDay}); err == nil {
			busy = append(busy, taken{s.in(zone), e.Title})
		}
	}
	return []tool.Precondition{slotOf(a, dates, busy, zone)}, nil
}

// maxOffset is more than any time zone's offset from UTC.
const maxOffset = 15 * time.Hour

// taken is an event of the calendar.
type taken struct {
	span
	title string
}

// in returns the span as instants: the days of an all-day event begin and end in the zone.
func (s span) in(zone *time.Location) span {
	if s.allDay {
		s.start, s.end = midnight(s.start, zone), midnight(s.end, zone)
	}
	return s
}

func midnight(day time.Time, zone *time.Location) time.Time {
	return time.Date(day.Year(), day.Month(), day.Day(), 0, 0, 0, 0, zone)
}

// datesOf returns the first dates of an event. A series of another program can have rules that are not understood here;
// it has no dates.
func datesOf(a Args, now time.Time) ([]span, error) {
	s, err := parseSpan(a)
	if err != nil || len(a.Recurrence) == 0 {
		return []span{s}, err
	}
	if len(a.Recurrence) > 1 {
		return nil, nil
	}
	rule, err := rrule.StrToROption(strings.TrimPrefix(a.Recurrence[0], "RRULE:"))
	if err != nil || rule.Freq > rrule.DAILY {
		return nil, nil
	}
	from := s.start
	if now.After(from) {
		from = now
	}
	rule.Dtstart = s.start
	if end := from.Add(maxAhead); rule.Until.IsZero() || rule.Until.After(end) {
		rule.Until = end
	}
	all, err := rrule.NewRRule(*rule)
	if err != nil {
		return nil, nil
	}
	var dates []span
	for next, n := all.Iterator(), 0; n < maxRepeats && len(dates) < maxDates; n++ {
		at, ok := next()
		if !ok {
			break
		}
		if end := at.Add(s.end.Sub(s.start)); end.After(from) {
			dates = append(dates, span{at, end, s.allDay})
		}
	}
	return dates, nil
}

// slotName is the name of the fact that a card shows about the time of its event.
const slotName = "Your calendar at that time"

// slotOf compares the dates of an event with the calendar. The value has the times of the other events, and not their
// titles.
func slotOf(a Args, dates []span, busy []taken, zone *time.Location) tool.Precondition {
	shown, name := zone, zone.String()
	if own, err := loadZone(a.TimeZone); err == nil && own != nil {
		shown, name = own, own.String()
	} else if !a.AllDay {
		shown, name = dates[0].start.Location(), "UTC"+dates[0].start.Format("-07:00")
	}
	var times []string
	var all []tool.Warning
	for _, d := range dates {
		at := d.in(zone)
		for _, b := range busy {
			if !b.start.Before(at.end) || !b.end.After(at.start) {
				continue
			}
			b.start, b.end = b.start.In(shown), b.end.In(shown)
			when, moments := b.when(at.start.In(shown), len(dates) > 1, name)
			times = append(times, when)
			all = append(all, tool.Warning{Text: "You have “" + b.title + "” then: " + when + ".", Moments: moments})
		}
	}
	if len(times) == 0 {
		return tool.Precondition{Name: slotName, Value: "free", Fine: true}
	}
	switch more := len(all) - maxConflicts; {
	case more == 1:
		all = append(all[:maxConflicts], tool.Warning{Text: "You have 1 more event at that time."})
	case more > 1:
		all = append(all[:maxConflicts],
			tool.Warning{Text: fmt.Sprintf("You have %d more events at that time.", more)})
	}
	return tool.Precondition{Name: slotName, Value: "taken " + strings.Join(times, "; "), Warnings: all}
}

// when returns the time of an event that takes place at a time of another one. It names the day if the reader could not
// tell.
func (b taken) when(then time.Time, series bool, zone string) (at string, moments []tool.Moment) {
	first, last := tool.DayOf(b.start), tool.DayOf(b.end)
	day := ""
	if series || first != tool.DayOf(then) || first != last && !b.allDay {
		moments, day = []tool.Moment{first}, first.Text+", "
	}
	if b.allDay {
		return day + "all day", moments
	}
	at = day + b.start.Format("15:04") + "–"
	if first != last {
		moments, at = append(moments, last), at+last.Text+", "
	}
	return at + b.end.Format("15:04") + " (" + zone + ")", moments
}
