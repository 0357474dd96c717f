package calendar_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestCardMoments, so that a page can write them in its reader's language.
func TestCardMoments(t *testing.T) {
	for args, want := range map[string]string{
		`"start":"2027-01-05T10:00:00","end":"2027-01-05T11:00:00","timeZone":"America/New_York"`: "" +
			"Starts: 2027-01-05T10:00:00-05:00 America/New_York\n" +
			"Ends: 2027-01-05T11:00:00-05:00 America/New_York",
		`"start":"2027-01-05T10:00:00+05:30","end":"2027-01-05T11:00:00+05:30"`: "" +
			"Starts: 2027-01-05T10:00:00+05:30 \nEnds: 2027-01-05T11:00:00+05:30 ",
		`"start":"2027-01-05","end":"2027-01-06","allDay":true`: "Day: 2027-01-05 ",
		`"start":"2027-01-05","end":"2027-01-08","allDay":true`: "Days: 2027-01-05 \nDays: 2027-01-07 ",
		`"start":"2027-01-05T10:00:00Z","end":"2027-01-05T11:00:00Z","timeZone":"UTC",` +
			`"recurrence":["RRULE:FREQ=WEEKLY;COUNT=3"]`: "Starts: 2027-01-05T10:00:00Z UTC\n" +
			"Ends: 2027-01-05T11:00:00Z UTC\nRepeats: 2027-01-19 ",
	} {
		tl := newTool()
		normal, err := tl.Normalize(json.RawMessage(`{"summary":"x",` + args + `}`))
		if err != nil {
			t.Fatal(err)
		}
		p, err := tl.Preview(normal)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range p.Fields {
			for _, m := range f.Moments {
				got = append(got, fmt.Sprintf("%s: %s %s", f.Label, m.At, m.TimeZone))
			}
		}
		if said := strings.Join(got, "\n"); said != want {
			t.Errorf("%s:\n%s\nwant\n%s", args, said, want)
		}
	}
}
