package calendar_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/tool"
	"github.com/countersign-run/countersign/shared/tools/calendar"
)

var today = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func newTool() *tool.Tool {
	return calendar.New(nil, calendar.Options{Now: func() time.Time { return today }})
}

// with returns the arguments of an ordinary one-hour event, with changes.
func with(change map[string]any) json.RawMessage {
	args := map[string]any{"summary": "x", "start": "2027-01-05T10:00:00Z", "end": "2027-01-05T11:00:00Z"}
	for k, v := range change {
		if v == nil {
			delete(args, k)
			continue
		}
		args[k] = v
	}
	b, _ := json.Marshal(args)
	return b
}

func at(start, end, zone string) map[string]any {
	m := map[string]any{"start": start, "end": end}
	if zone != "" {
		m["timeZone"] = zone
	}
	return m
}

func rule(r string) map[string]any {
	m := at("2027-01-05T10:00:00", "2027-01-05T11:00:00", "Europe/Berlin")
	m["recurrence"] = []string{r}
	return m
}

func TestWhatIsNoEventIsRefusedAndTheFieldNamed(t *testing.T) {
	for name, c := range map[string]struct {
		change map[string]any
		field  string
		class  fault.Class
	}{
		"impossible date": {at("2026-02-30T10:00:00Z", "2026-02-30T11:00:00Z", ""), "start",
			fault.Validation},
		"hour 24": {at("2027-01-05T24:00:00Z", "2027-01-05T25:00:00Z", ""), "start",
			fault.Validation},
		"no offset, no zone": {at("2027-01-05T10:00:00", "2027-01-05T11:00:00", ""), "start",
			fault.Validation},
		"Go's Local": {at("2027-01-05T10:00:00", "2027-01-05T11:00:00", "Local"), "timeZone",
			fault.Validation},
		"a path for a zone": {at("2027-01-05T10:00:00", "2027-01-05T11:00:00", "../../etc/passwd"),
			"timeZone", fault.Validation},
		"a zone in another case": {at("2027-01-05T10:00:00", "2027-01-05T11:00:00", "europe/berlin"),
			"timeZone", fault.Validation},
		"an abbreviation": {at("2027-01-05T10:00:00", "2027-01-05T11:00:00", "EST"), "timeZone",
			fault.Validation},
		"an abbreviation with its rules": {at("2027-01-05T10:00:00", "2027-01-05T11:00:00", "MST7MDT"), "timeZone",
			fault.Validation},
		"a zone that does not exist": {at("2027-01-05T10:00:00", "2027-01-05T11:00:00", "Europe/Atlantis"),
			"timeZone", fault.Validation},
		"the hour that spring skips": {at("2027-03-28T02:30:00", "2027-03-28T03:30:00", "Europe/Berlin"), "start",
			fault.Validation},
		"comma for the decimal point": {at("2027-01-05T10:00:00,5Z", "2027-01-05T11:00:00Z", ""), "start",
			fault.Validation},
		"parts of a second": {at("2027-01-05T10:00:00.5Z", "2027-01-05T11:00:00Z", ""), "start",
			fault.Validation},
		"an offset of 20 hours": {at("2027-01-05T10:00:00+20:00", "2027-01-06T11:00:00+20:00", ""), "start",
			fault.Validation},
		"end before start": {at("2027-01-05T11:00:00Z", "2027-01-05T10:00:00Z", ""), "end",
			fault.Validation},
		"no length": {at("2027-01-05T11:00:00Z", "2027-01-05T11:00:00Z", ""), "end",
			fault.Validation},
		"end before start by its offset": {at("2027-01-05T10:00:00+01:00", "2027-01-05T10:30:00+02:00", ""), "end",
			fault.Validation},
		"far past": {at("1970-01-01T00:00:00Z", "1970-01-01T01:00:00Z", ""), "start",
			fault.Validation},
		"far future": {at("2099-01-01T00:00:00Z", "2099-01-01T01:00:00Z", ""), "start",
			fault.Validation},
		"59 days long": {at("2027-01-05T10:00:00Z", "2027-03-05T10:00:00Z", ""), "end",
			fault.Validation},
		"dates as objects": {map[string]any{"start": map[string]any{"date": "2027-01-05"}}, "start",
			fault.Validation},
		"a date without allDay": {at("2027-01-05", "2027-01-06", ""), "start", fault.Validation},
		"a time with allDay":    {map[string]any{"allDay": true}, "start", fault.Validation},
		"an all-day event of no day": {map[string]any{"allDay": true, "start": "2027-01-05", "end": "2027-01-05"},
			"end", fault.Validation},
		"free text": {at("next tuesday", "later", ""), "start", fault.Validation},
		"other digits": {at("\u0662\u0660\u0662\u0667-01-05T10:00:00Z", "2027-01-05T11:00:00Z", ""),
			"start", fault.Validation},
		"100000 instances": {rule("RRULE:FREQ=DAILY;COUNT=100000"), "recurrence", fault.Validation},
		"401 instances":    {rule("RRULE:FREQ=DAILY;COUNT=401"), "recurrence", fault.Validation},
		"too many by UNTIL": {rule("RRULE:FREQ=DAILY;UNTIL=20300110T000000Z"), "recurrence",
			fault.Validation},
		"without an end": {rule("RRULE:FREQ=WEEKLY"), "recurrence", fault.Validation},
		"COUNT and UNTIL": {rule("RRULE:FREQ=DAILY;COUNT=5;UNTIL=20270110T000000Z"), "recurrence",
			fault.Validation},
		"UNTIL before the start": {rule("RRULE:FREQ=DAILY;UNTIL=20260110T000000Z"), "recurrence",
			fault.Validation},
		"UNTIL as a date": {rule("RRULE:FREQ=DAILY;UNTIL=20270110"), "recurrence", fault.Validation},
		"never takes place": {rule("RRULE:FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30;COUNT=3"), "recurrence",
			fault.Validation},
		"every second": {rule("RRULE:FREQ=SECONDLY;COUNT=3"), "recurrence", fault.Validation},
		"a line break in the rule": {rule("RRULE:FREQ=DAILY\r\nATTENDEE:mailto:evil@x.com"), "recurrence",
			fault.Validation},
		"another property": {rule("EXDATE:20270105T100000Z"), "recurrence", fault.Validation},
		"a part twice":     {rule("RRULE:FREQ=DAILY;COUNT=2;COUNT=3"), "recurrence", fault.Validation},
		"a start within the rule": {rule("RRULE:FREQ=DAILY;COUNT=2;DTSTART=20270101T000000Z"), "recurrence",
			fault.Validation},
		"recurring without a zone": {map[string]any{"recurrence": []string{"RRULE:FREQ=WEEKLY;COUNT=3"}},
			"timeZone", fault.Validation},
		"two rules": {
			map[string]any{"recurrence": []string{"RRULE:FREQ=WEEKLY;COUNT=3", "RRULE:FREQ=DAILY;COUNT=3"}},
			"recurrence", fault.Validation},
		"a line break in an attendee": {map[string]any{"attendees": []string{"a@example.com\r\nx"}}, "attendees/0",
			fault.Validation},
		"21 attendees": {
			map[string]any{"attendees": strings.Split(strings.Repeat("a@example.com ", 20)+"b@example.com", " ")},
			"attendees", fault.Validation},
		"no title":                  {map[string]any{"summary": "  "}, "summary", fault.Validation},
		"a line break in the title": {map[string]any{"summary": "a\nb"}, "summary", fault.Validation},
		"control characters":        {map[string]any{"description": "\x1b[2J"}, "description", fault.Validation},
		"a long description": {map[string]any{"description": strings.Repeat("x", 8193)}, "description",
			fault.Validation},
		"another way to tell": {map[string]any{"sendUpdates": "ALL"}, "sendUpdates", fault.Validation},
		"somebody's calendar": {map[string]any{"calendarId": "userB@example.com"}, "calendarId",
			fault.Policy},
		"a colour": {map[string]any{"colorId": "1"}, "colorId", fault.Validation},
		"no end":   {map[string]any{"end": nil}, "end", fault.Validation},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := newTool().Normalize(with(c.change))
			var e *fault.Error
			if !errors.As(err, &e) || e.Class != c.class || e.Field != c.field {
				t.Errorf("Normalize = %s, %v; want a %s at %q", a, err, c.class, c.field)
			}
		})
	}
}

func TestEveryTimeIsWrittenWithItsOffset(t *testing.T) {
	for name, c := range map[string]struct {
		change     map[string]any
		start, end string
	}{
		"with an offset": {at("2027-01-05T10:00:00+01:00", "2027-01-05T11:00:00+01:00", ""),
			"2027-01-05T10:00:00+01:00", "2027-01-05T11:00:00+01:00"},
		"an offset and a zone": {at("2027-01-05T10:00:00Z", "2027-01-05T11:00:00Z", "Europe/Berlin"),
			"2027-01-05T11:00:00+01:00", "2027-01-05T12:00:00+01:00"},
		"a zone alone": {at("2027-07-05T10:00:00", "2027-07-05T11:00:00", "Europe/Berlin"),
			"2027-07-05T10:00:00+02:00", "2027-07-05T11:00:00+02:00"},
		"zeros behind the second": {at("2027-01-05T10:00:00.000Z", "2027-01-05T11:00:00Z", ""),
			"2027-01-05T10:00:00Z", "2027-01-05T11:00:00Z"},
		"the hour that autumn doubles": {at("2027-10-31T02:30:00", "2027-10-31T02:45:00", "Europe/Berlin"),
			"2027-10-31T02:30:00+02:00", "2027-10-31T02:45:00+02:00"},
		"its second time": {at("2027-10-31T02:30:00+01:00", "2027-10-31T02:45:00+01:00",
			"Europe/Berlin"), "2027-10-31T02:30:00+01:00", "2027-10-31T02:45:00+01:00"},
		"doubled, in the south and west": {at("2027-11-07T01:30:00", "2027-11-07T01:45:00", "America/New_York"),
			"2027-11-07T01:30:00-04:00", "2027-11-07T01:45:00-04:00"},
		"all day": {map[string]any{"allDay": true, "start": "2027-01-05", "end": "2027-01-07"},
			"2027-01-05", "2027-01-07"},
		"a zone of three parts": {at("2027-01-05T10:00:00", "2027-01-05T11:00:00",
			"America/Argentina/Buenos_Aires"), "2027-01-05T10:00:00-03:00", "2027-01-05T11:00:00-03:00"},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := newTool().Normalize(with(c.change))
			var a calendar.Args
			if err != nil || json.Unmarshal(raw, &a) != nil || a.Start != c.start || a.End != c.end {
				t.Fatalf("Normalize = %s, %v; want %s to %s", raw, err, c.start, c.end)
			}
			if again, err := newTool().Normalize(raw); err != nil || string(again) != string(raw) {
				t.Errorf("once more = %s, %v; want the same", again, err)
			}
		})
	}
}

func TestAttendeesAreToldUnlessSaidOtherwise(t *testing.T) {
	for _, c := range []struct{ change, want string }{{"", `"sendUpdates":"all"`}, {"none", `"sendUpdates":"none"`}} {
		change := map[string]any{"attendees": []string{"a@example.com", "a@EXAMPLE.com"}, "calendarId": "primary"}
		if c.change != "" {
			change["sendUpdates"] = c.change
		}
		raw, err := newTool().Normalize(with(change))
		if s := string(raw); err != nil || !strings.Contains(s, c.want) ||
			!strings.Contains(s, `"attendees":["a@example.com"]`) || strings.Contains(s, "primary") {
			t.Errorf("Normalize = %s, %v; want %s", s, err, c.want)
		}
	}
	if raw, _ := newTool().Normalize(with(nil)); strings.Contains(string(raw), "sendUpdates") {
		t.Errorf("nobody is invited, and yet %s", raw)
	}
}

// shown returns a preview as one string.
func shown(t *testing.T, change map[string]any) string {
	t.Helper()
	tl := newTool()
	args, err := tl.Normalize(with(change))
	if err != nil {
		t.Fatal(err)
	}
	p, err := tl.Preview(args)
	if err != nil {
		t.Fatal(err)
	}
	lines := []string{p.Title}
	for _, f := range p.Fields {
		lines = append(lines, f.Label+": "+f.Value)
	}
	for _, w := range p.Warnings {
		lines = append(lines, "! "+w)
	}
	return strings.Join(lines, "\n")
}

func TestThePreviewSaysWhenWhoAndWhere(t *testing.T) {
	recurring := rule("RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,TH;COUNT=4")
	for name, c := range map[string]struct {
		change map[string]any
		want   []string
	}{
		"weekday, zone and offset": {at("2027-01-05T10:00:00", "2027-01-05T11:00:00", "Europe/Berlin"),
			[]string{"Starts: Tuesday, 5 January 2027, 10:00 (Europe/Berlin, UTC+01:00)"}},
		"offset alone": {nil, []string{"Starts: Tuesday, 5 January 2027, 10:00 (UTC+00:00)"}},
		"doubled hour": {at("2027-10-31T02:30:00", "2027-10-31T02:45:00", "Europe/Berlin"),
			[]string{"UTC+02:00", "! The clocks of Europe/Berlin show the time of the start twice on that day. The " +
				"one at UTC+02:00 is meant."}},
		"all day": {map[string]any{"allDay": true, "start": "2027-01-05", "end": "2027-01-07"},
			[]string{"Days: Tuesday, 5 January 2027 to Wednesday, 6 January 2027"}},
		"one day": {map[string]any{"allDay": true, "start": "2027-01-05", "end": "2027-01-06"},
			[]string{"Day: Tuesday, 5 January 2027"}},
		"past": {at("2026-11-20T10:00:00Z", "2026-11-20T11:00:00Z", ""),
			[]string{"! The event begins in the past."}},
		"recurrence": {recurring, []string{"Every 2 weeks on Tuesday, Thursday; 4 in all, the last on " +
			"Thursday, 21 January 2027", "RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,TH;COUNT=4"}},
		"first day not in rule": {rule("RRULE:FREQ=MONTHLY;BYDAY=-1FR;COUNT=2"),
			[]string{"on the last Friday; 2 in all", "! The first day is not one that the rule names"}},
		"invitations": {map[string]any{"attendees": []string{"a@example.com", "b@example.com"}},
			[]string{"with 2 invited", "Invited: a@example.com\nb@example.com",
				"Invitations: Google mails an invitation to everyone invited"}},
		"punycode": {map[string]any{"attendees": []string{"u@xn--exmple-4nf.com"}},
			[]string{"u@xn--exmple-4nf.com (shown as u@",
				"! Invited: the domain of u@xn--exmple-4nf.com is written with letters from outside ASCII"}},
		"a link's target": {map[string]any{"description": "<a href='https://evil.example'>Join Meet</a>"},
			[]string{"Links lead to: https://evil.example", "<a href='https://evil.example'>Join Meet</a>"}},
		"hidden characters": {map[string]any{"summary": "a\u202eb"},
			[]string{"Title: a⟨U+202E⟩b", "! Title: there are characters that cannot be seen"}},
		"video call": {map[string]any{"meet": true, "location": "Room 1"},
			[]string{"A Google Meet link will be added", "Location: Room 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := shown(t, c.change)
			for _, w := range c.want {
				if !strings.Contains(got, w) {
					t.Errorf("the preview lacks %q:\n%s", w, got)
				}
			}
		})
	}
}

func TestTargetsAndSummary(t *testing.T) {
	tl := newTool()
	args, err := tl.Normalize(with(map[string]any{"attendees": []string{"a@example.com"}, "description": "SECRET"}))
	if err != nil {
		t.Fatal(err)
	}
	if r, err := tl.Targets(args); err != nil || len(r) != 1 || r[0] != tool.Addresses([]string{"a@example.com"})[0] {
		t.Errorf("Targets = %v, %v", r, err)
	}
	if s := tl.Summary(args); s != "Created the event “x” on 2027-01-05T10:00:00Z with a@example.com." {
		t.Errorf("Summary = %q", s)
	}
}

func TestBoundIsAllButTheTexts(t *testing.T) {
	tl := newTool()
	bound := func(change map[string]any) string {
		args, err := tl.Normalize(with(change))
		if err != nil {
			t.Fatal(err)
		}
		b, err := tl.Bound(args)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	event := bound(nil)
	for _, words := range []map[string]any{{"summary": "another"}, {"description": "another"},
		{"location": "another"}} {
		if got := bound(words); got != event {
			t.Errorf("with %v it is %s, and without %s", words, got, event)
		}
	}
	for _, other := range []map[string]any{{"attendees": []string{"b@example.com"}}, {"meet": true}} {
		if got := bound(other); got == event {
			t.Errorf("%v is not part of %s", other, got)
		}
	}
}
