package calendar_test

import (
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/testkit/toolstest"
	"github.com/countersign-run/countersign/shared/tools/calendar"
)

// TestConflictNamed compares a new event with one that the calendar has.
func TestConflictNamed(t *testing.T) {
	recurs := func(rule string) map[string]any { return map[string]any{"recurrence": []any{rule}} }
	self := func(status string) map[string]any {
		return map[string]any{"attendees": []any{map[string]any{"email": "me@example.com", "responseStatus": status}}}
	}
	const same, named = "2027-01-05T09:00:00Z 2027-01-05T10:00:00Z", "10:00–11:00 (Europe/Berlin)"
	for name, c := range map[string]struct {
		has    string // start and end
		more   map[string]any
		wants  map[string]any // besides 10:00 to 11:00 in Berlin
		warned string         // joined by |
	}{
		"the same time": {has: same, warned: named},
		"a part of it": {has: "2027-01-05T04:45:00-05:00 2027-01-05T12:00:00Z",
			warned: "10:45–13:00 (Europe/Berlin)"},
		"just before":      {has: "2027-01-05T08:00:00Z 2027-01-05T09:00:00Z"},
		"just after":       {has: "2027-01-05T10:00:00Z 2027-01-05T11:00:00Z"},
		"marked as free":   {has: same, more: map[string]any{"transparency": "transparent"}},
		"declined":         {has: same, more: self("declined")},
		"not answered":     {has: same, more: self("needsAction"), warned: named},
		"a whole day":      {has: "2027-01-05 2027-01-06", warned: "all day"},
		"the day before":   {has: "2027-01-04 2027-01-05"},
		"days from before": {has: "2027-01-04 2027-01-07", warned: "Monday, 4 January 2027, all day"},
		"through the night": {has: "2027-01-04T22:00:00Z 2027-01-05T09:30:00Z",
			warned: "Monday, 4 January 2027, 23:00–Tuesday, 5 January 2027, 10:30 (Europe/Berlin)"},
		"a repetition": {has: "2026-12-29T09:00:00Z 2026-12-29T10:00:00Z", more: recurs("RRULE:FREQ=WEEKLY;COUNT=9"),
			warned: named},
		"a new day": {has: "2027-01-05T22:30:00Z 2027-01-05T22:45:00Z",
			wants:  map[string]any{"start": "2027-01-05", "end": "2027-01-06", "allDay": true, "timeZone": nil},
			warned: "22:30–22:45 (UTC)"},
		"a new day beside": {has: "2027-01-06T00:00:00Z 2027-01-06T01:00:00Z",
			wants: map[string]any{"start": "2027-01-05", "end": "2027-01-06", "allDay": true, "timeZone": nil}},
		"an offset": {has: same,
			wants: map[string]any{"start": "2027-01-05T18:00:00+09:00", "end": "2027-01-05T19:00:00+09:00",
				"timeZone": nil},
			warned: "18:00–19:00 (UTC+09:00)"},
		"a new series": {has: "2027-01-19T09:00:00Z 2027-01-19T09:15:00Z", wants: recurs("RRULE:FREQ=WEEKLY;COUNT=4"),
			warned: "Tuesday, 19 January 2027, 10:00–10:15 (Europe/Berlin)"},
		"late in a series": {has: "2027-01-15T09:00:00Z 2027-01-15T09:15:00Z",
			wants: recurs("RRULE:FREQ=DAILY;COUNT=20")},
		"two series": {has: "2026-12-29T09:00:00Z 2026-12-29T10:00:00Z", more: recurs("RRULE:FREQ=WEEKLY;COUNT=9"),
			wants: recurs("RRULE:FREQ=DAILY;COUNT=9"),
			warned: "Tuesday, 5 January 2027, 10:00–11:00 (Europe/Berlin)|" +
				"Tuesday, 12 January 2027, 10:00–11:00 (Europe/Berlin)"},
	} {
		t.Run(name, func(t *testing.T) {
			l := openLists(t, scope)
			start, end, _ := strings.Cut(c.has, " ")
			toolstest.PutEvent(t, l.Server, "Standup", start, end, c.more)
			var want []string
			for _, w := range strings.FieldsFunc(c.warned, func(r rune) bool { return r == '|' }) {
				want = append(want, "You have “Standup” then: "+w+".")
			}
			if got := l.warned(t, c.wants); strings.Join(got, "|") != strings.Join(want, "|") {
				t.Errorf("the card warns %q, not %q", got, want)
			}
		})
	}
}

// TestConflictsCounted checks that a full calendar costs one request and four lines.
func TestConflictsCounted(t *testing.T) {
	l := openLists(t, scope)
	for range 300 {
		toolstest.PutEvent(t, l.Server, "Standup", "2027-01-05T09:00:00Z", "2027-01-05T10:00:00Z", nil)
	}
	got := l.warned(t, nil)
	if len(got) != 4 || got[3] != "You have 247 more events at that time." {
		t.Errorf("%q; want len(got) 4, got[3] “You have 247 more events at that time.”", got)
	}
}

// meeting is an event on an ordinary day.
var meeting = toolstest.Suite{Args: map[string]any{"summary": "x", "start": "2027-01-05T10:00:00",
	"end": "2027-01-05T11:00:00", "timeZone": "Europe/Berlin"}}

// warned returns the warnings of the card of the meeting with a change.
func (l lists) warned(t *testing.T, change map[string]any) (texts []string) {
	t.Helper()
	c := calendar.New(fakegoogle.Accounts{}, calendar.Options{Endpoint: l.URL + "/calendar/v3/",
		Timeout: await.Most, Now: func() time.Time { return today }})
	raw, err := c.Normalize(meeting.With(change))
	if err != nil {
		t.Fatal(err)
	}
	all, err := c.Preconditions(t.Context(), tool.Call{UID: toolstest.GoogleUser, Args: raw})
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %v; want one fact", all, err)
	}
	for _, w := range all[0].Warnings {
		for _, m := range w.Moments {
			if !strings.Contains(w.Text, m.Text) {
				t.Errorf("%q does not name %q", w.Text, m.Text)
			}
		}
		texts = append(texts, w.Text)
	}
	return texts
}
