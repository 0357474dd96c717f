package calendar_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/tools/calendar"
)

// FuzzNormalize checks that accepted arguments are a fixed point, name the requested times within the limits, and are
// shown with the number of times that the event takes place.
func FuzzNormalize(f *testing.F) {
	f.Add("2027-01-05T10:00:00", "2027-01-05T11:00:00", "Europe/Berlin", "RRULE:FREQ=WEEKLY;COUNT=3", false)
	f.Add("2027-01-05", "2027-01-06", "", "RRULE:FREQ=YEARLY;UNTIL=20300105", true)
	f.Add("2027-10-31T02:30:00", "2027-10-31T02:45:00", "Europe/Berlin",
		"RRULE:FREQ=MONTHLY;BYDAY=-1FR,2MO;BYSETPOS=-1;COUNT=9", false)
	f.Add("2027-03-28T02:30:00Z", "2027-03-28T03:30:00+14:00", "Pacific/Apia",
		"RRULE:FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30;COUNT=1", false)
	f.Add("2027-10-31T02:30:00+01:00", "2027-10-31T02:45:00.000+01:00", "Europe/Berlin", "", false)
	f.Add("2027-04-04T01:45:00", "2027-04-04T02:15:00", "Australia/Lord_Howe",
		"RRULE:FREQ=DAILY;INTERVAL=7;UNTIL=20270501T000000Z;WKST=SU", false)
	f.Add("2028-02-29T23:59:59-12:00", "2028-03-14T23:59:59+14:00", "Asia/Kathmandu", "RRULE:FREQ=YEARLY;COUNT=2",
		false)
	f.Add("2026-11-21T12:00:00", "2026-11-21T12:00:01", "Etc/GMT+12", "RRULE:FREQ=DAILY;BYDAY=MO,TU,SU;COUNT=400",
		false)
	f.Fuzz(func(t *testing.T, start, end, zone, rule string, allDay bool) {
		tl := newTool()
		change := map[string]any{"start": start, "end": end, "timeZone": zone, "allDay": allDay}
		if rule != "" {
			change["recurrence"] = []string{rule}
		}
		args, ok := suite.Holds(t, with(change))
		if !ok {
			return
		}
		var a calendar.Args
		if err := json.Unmarshal(args, &a); err != nil {
			t.Fatal(err)
		}
		from, to := meant(t, start, a.Start, a), meant(t, end, a.End, a)
		if long := to.Sub(from); long <= 0 || long > calendar.MaxLength || from.Before(today.Add(-calendar.MaxPast)) ||
			from.After(today.Add(calendar.MaxFuture)) {
			t.Fatalf("%s is taken", args)
		}
		p, err := tl.Preview(args)
		if err != nil {
			t.Fatal(err)
		}
		label := map[bool]string{false: "Starts", true: "Day"}[allDay]
		if !strings.HasPrefix(field(p, label), from.Format("Monday, 2 January 2006")) {
			t.Fatalf("%s begins %s, and %+v is shown", args, from, p.Fields)
		}
		if rule != "" {
			repeats(t, a, field(p, "Repeats"), slices.ContainsFunc(p.Warnings, func(w string) bool {
				return strings.HasPrefix(w, "The rule does not include the first day.")
			}))
		}
	})
}

// meant checks that a time in its canonical form is the moment that was written, and shows the local time of its zone.
func meant(t *testing.T, in, canonical string, a calendar.Args) time.Time {
	t.Helper()
	layout := map[bool]string{false: time.RFC3339, true: time.DateOnly}[a.AllDay]
	at, err := time.Parse(layout, canonical)
	if err != nil {
		t.Fatalf("%q became %q: %v", in, canonical, err)
	}
	if asked, err := time.Parse(layout, in); err == nil && !asked.Equal(at) {
		t.Fatalf("%q became %q", in, canonical)
	}
	if a.AllDay || a.TimeZone == "" {
		return at
	}
	zone, err := time.LoadLocation(a.TimeZone)
	if err != nil || at.In(zone).Format(time.RFC3339) != canonical {
		t.Fatalf("%q became %q in %q: %v", in, canonical, a.TimeZone, err)
	}
	if clock, err := time.Parse("2006-01-02T15:04:05", in); err == nil &&
		clock.Format(time.DateTime) != at.In(zone).Format(time.DateTime) {
		t.Fatalf("the clock of %q became %q", in, canonical)
	}
	if again := at.Add(-time.Hour).In(zone); !strings.ContainsAny(in[len(time.DateOnly):], "Z+-") &&
		again.Format(time.DateTime) == at.In(zone).Format(time.DateTime) {
		t.Fatalf("%q became %q, the second time that the clocks show it", in, canonical)
	}
	return at.In(zone)
}

var (
	inAll = regexp.MustCompile(`; (\d+) in all, the last on (.+)$`)
	part  = regexp.MustCompile(`(COUNT|UNTIL|BYDAY|BYMONTH)=([^;]+)`)
)

// repeats compares the preview of a recurring event with its rule: the number of dates, and whether the last date is
// one that the rule allows. With extra, the card says that the start is a date beside those of the rule.
func repeats(t *testing.T, a calendar.Args, shown string, extra bool) {
	t.Helper()
	words, rule, _ := strings.Cut(shown, "\n")
	said := inAll.FindStringSubmatch(words)
	if len(a.Recurrence) != 1 || rule != a.Recurrence[0] || said == nil {
		t.Fatalf("%q is shown as %q", a.Recurrence, shown)
	}
	last, err := time.Parse("Monday, 2 January 2006", said[2])
	if err != nil {
		t.Fatal(err)
	}
	if n, err := strconv.Atoi(said[1]); err != nil || n < 1 || n > calendar.MaxInstances {
		t.Fatalf("%q takes place %d times, %v", rule, n, err)
	}
	for _, p := range part.FindAllStringSubmatch(rule, -1) {
		fits := true
		switch values := strings.Split(p[2], ","); p[1] {
		case "COUNT":
			count, err := strconv.Atoi(p[2])
			fits = err == nil && said[1] == strconv.Itoa(count+map[bool]int{true: 1}[extra])
		case "UNTIL":
			until, err := time.Parse("20060102", p[2][:8])
			fits = err == nil && !last.After(until.AddDate(0, 0, 1)) // the zone may be a day ahead of UTC
		case "BYDAY":
			day := strings.ToUpper(last.Weekday().String()[:2])
			fits = slices.ContainsFunc(values, func(v string) bool { return strings.HasSuffix(v, day) })
		case "BYMONTH":
			fits = slices.Contains(values, strconv.Itoa(int(last.Month())))
		}
		if !fits {
			t.Fatalf("%q is shown as %q", rule, words)
		}
	}
}

// field returns the preview's value under the label, or under its plural.
func field(p tool.Preview, label string) string {
	for _, f := range p.Fields {
		if f.Label == label || f.Label == label+"s" {
			return f.Value
		}
	}
	return ""
}
