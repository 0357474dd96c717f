package calendar_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/toolstest"
	"github.com/countersign-run/countersign/shared/tools/calendar"
)

var today = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func newTool() *tool.Tool {
	return calendar.New(nil, calendar.Options{Now: func() time.Time { return today }})
}

// suite is the tool with an ordinary event of one hour, without attendees.
var suite = toolstest.Suite{
	Tool: newTool(),
	Args: map[string]any{"summary": "x", "start": "2027-01-05T10:00:00Z", "end": "2027-01-05T11:00:00Z"},
	Other: map[string]map[string]any{
		"summary": {"summary": "another"}, "start": {"start": "2027-01-05T09:00:00Z"},
		"end": {"end": "2027-01-05T12:00:00Z"}, "timeZone": {"timeZone": "Europe/Berlin"},
		"allDay":    {"allDay": true, "start": "2027-01-05", "end": "2027-01-06"},
		"attendees": {"attendees": []string{"b@example.com"}}, "location": {"location": "Room 1"},
		"description": {"description": "Agenda"}, "meet": {"meet": true},
		"recurrence": {"recurrence": []string{"RRULE:FREQ=WEEKLY;COUNT=3"}, "timeZone": "UTC"},
		"lasts":      {"lasts": "30 minutes"},
	},
	Fixed: map[string]any{"calendarId": "primary", "sendUpdates": "all"},
	Free:  []string{"summary", "location", "description", "lasts"},
	Labels: []string{"Title", "Starts", "Ends", "Day", "Days", "Repeats", "Invited", "Invitations", "Location",
		"Description", "Links lead to", "Video call", "Calendar",
		"Length, from your preferences"},
	Texts:     map[string]string{"summary": "Title", "location": "Location", "description": "Description"},
	Addresses: []toolstest.Addresses{{Argument: "attendees", Label: "Invited"}},
	Previews:  previews,
	Refused:   refused,
	Unsaid:    []string{"evil"},
}

// invited is the same with an attendee, so that sendUpdates matters.
func invited() toolstest.Suite {
	s := suite
	s.Args = maps.Clone(s.Args)
	s.Args["attendees"] = []string{"a@example.com"}
	s.Other = maps.Clone(s.Other)
	s.Other["sendUpdates"] = map[string]any{"sendUpdates": "none"}
	s.Fixed = map[string]any{"calendarId": "primary", "sendUpdates": "all"}
	s.Previews, s.Refused = nil, nil
	return s
}

func TestSuite(t *testing.T) {
	t.Run("alone", suite.Run)
	t.Run("invited", invited().Run)
}

// with returns the arguments of an ordinary event, with changes; nil removes a field.
func with(change map[string]any) json.RawMessage { return suite.With(change) }

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

// refused lists arguments that are not an event.
var refused = map[string]toolstest.Refused{
	"impossible date":    {Change: at("2026-02-30T10:00:00Z", "2026-02-30T11:00:00Z", ""), Field: "start"},
	"hour 24":            {Change: at("2027-01-05T24:00:00Z", "2027-01-05T25:00:00Z", ""), Field: "start"},
	"no offset, no zone": {Change: at("2027-01-05T10:00:00", "2027-01-05T11:00:00", ""), Field: "start"},
	"Go's Local":         {Change: at("2027-01-05T10:00:00", "2027-01-05T11:00:00", "Local"), Field: "timeZone"},
	"a path for a zone": {Change: at("2027-01-05T10:00:00", "2027-01-05T11:00:00", "../../etc/passwd"),
		Field: "timeZone"},
	"a zone in another case": {Change: at("2027-01-05T10:00:00", "2027-01-05T11:00:00", "europe/berlin"),
		Field: "timeZone"},
	"an abbreviation": {Change: at("2027-01-05T10:00:00", "2027-01-05T11:00:00", "EST"), Field: "timeZone"},
	"an abbreviation with its rules": {Change: at("2027-01-05T10:00:00", "2027-01-05T11:00:00", "MST7MDT"),
		Field: "timeZone"},
	"a zone that does not exist": {Change: at("2027-01-05T10:00:00", "2027-01-05T11:00:00", "Europe/Atlantis"),
		Field: "timeZone"},
	"the hour that spring skips": {Change: at("2027-03-28T02:30:00", "2027-03-28T03:30:00", "Europe/Berlin"),
		Field: "start"},
	"comma for the decimal point": {Change: at("2027-01-05T10:00:00,5Z", "2027-01-05T11:00:00Z", ""), Field: "start"},
	"parts of a second":           {Change: at("2027-01-05T10:00:00.5Z", "2027-01-05T11:00:00Z", ""), Field: "start"},
	"an offset of 20 hours": {Change: at("2027-01-05T10:00:00+20:00", "2027-01-06T11:00:00+20:00", ""),
		Field: "start"},
	"end before start": {Change: at("2027-01-05T11:00:00Z", "2027-01-05T10:00:00Z", ""), Field: "end"},
	"no length":        {Change: at("2027-01-05T11:00:00Z", "2027-01-05T11:00:00Z", ""), Field: "end"},
	"end before start by its offset": {Change: at("2027-01-05T10:00:00+01:00", "2027-01-05T10:30:00+02:00", ""),
		Field: "end"},
	"far past":   {Change: at("1970-01-01T00:00:00Z", "1970-01-01T01:00:00Z", ""), Field: "start"},
	"far future": {Change: at("2099-01-01T00:00:00Z", "2099-01-01T01:00:00Z", ""), Field: "start"},
	"a year and a second ago": {Change: at("2025-11-20T11:59:59Z", "2025-11-20T12:30:00Z", ""),
		Field: "start"},
	"ten years and a second ahead": {Change: at("2036-11-21T12:00:01Z", "2036-11-21T12:30:00Z", ""),
		Field: "start"},
	"14 days and a second":  {Change: at("2027-01-05T10:00:00Z", "2027-01-19T10:00:01Z", ""), Field: "end"},
	"59 days long":          {Change: at("2027-01-05T10:00:00Z", "2027-03-05T10:00:00Z", ""), Field: "end"},
	"dates as objects":      {Change: map[string]any{"start": map[string]any{"date": "2027-01-05"}}, Field: "start"},
	"a date without allDay": {Change: at("2027-01-05", "2027-01-06", ""), Field: "start"},
	"a time with allDay":    {Change: map[string]any{"allDay": true}, Field: "start"},
	"an all-day event of no day": {Change: map[string]any{"allDay": true, "start": "2027-01-05", "end": "2027-01-05"},
		Field: "end"},
	"free text": {Change: at("next tuesday", "later", ""), Field: "start"},
	"other digits": {Change: at("\u0662\u0660\u0662\u0667-01-05T10:00:00Z", "2027-01-05T11:00:00Z", ""),
		Field: "start"},
	"100000 instances":         {Change: rule("RRULE:FREQ=DAILY;COUNT=100000"), Field: "recurrence"},
	"401 instances":            {Change: rule("RRULE:FREQ=DAILY;COUNT=401"), Field: "recurrence"},
	"too many by UNTIL":        {Change: rule("RRULE:FREQ=DAILY;UNTIL=20300110T000000Z"), Field: "recurrence"},
	"without an end":           {Change: rule("RRULE:FREQ=WEEKLY"), Field: "recurrence"},
	"COUNT and UNTIL":          {Change: rule("RRULE:FREQ=DAILY;COUNT=5;UNTIL=20270110T000000Z"), Field: "recurrence"},
	"UNTIL before the start":   {Change: rule("RRULE:FREQ=DAILY;UNTIL=20260110T000000Z"), Field: "recurrence"},
	"UNTIL as a date":          {Change: rule("RRULE:FREQ=DAILY;UNTIL=20270110"), Field: "recurrence"},
	"never takes place":        {Change: rule("RRULE:FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30;COUNT=3"), Field: "recurrence"},
	"every second":             {Change: rule("RRULE:FREQ=SECONDLY;COUNT=3"), Field: "recurrence"},
	"a line break in the rule": {Change: rule("RRULE:FREQ=DAILY\r\nATTENDEE:mailto:evil@x.com"), Field: "recurrence"},
	"another property":         {Change: rule("EXDATE:20270105T100000Z"), Field: "recurrence"},
	"a part twice":             {Change: rule("RRULE:FREQ=DAILY;COUNT=2;COUNT=3"), Field: "recurrence"},
	"weekly by month days":     {Change: rule("RRULE:FREQ=WEEKLY;BYMONTHDAY=5;COUNT=2"), Field: "recurrence"},
	"a position in a week": {Change: rule("RRULE:FREQ=WEEKLY;BYDAY=MO,TU,WE,TH,FR;BYSETPOS=1,3;COUNT=3"),
		Field: "recurrence"},
	"a day of no month":     {Change: rule("RRULE:FREQ=YEARLY;BYMONTHDAY=29;COUNT=3"), Field: "recurrence"},
	"a position in nothing": {Change: rule("RRULE:FREQ=DAILY;BYSETPOS=1;COUNT=2"), Field: "recurrence"},
	"400 beside the start":  {Change: rule("RRULE:FREQ=WEEKLY;BYDAY=WE;COUNT=400"), Field: "recurrence"},
	"a start within the rule": {Change: rule("RRULE:FREQ=DAILY;COUNT=2;DTSTART=20270101T000000Z"),
		Field: "recurrence"},
	"recurring without a zone": {Change: map[string]any{"recurrence": []string{"RRULE:FREQ=WEEKLY;COUNT=3"}},
		Field: "timeZone"},
	"two rules": {Change: map[string]any{"recurrence": []string{"RRULE:FREQ=WEEKLY;COUNT=3",
		"RRULE:FREQ=DAILY;COUNT=3"}}, Field: "recurrence"},
	"a line break in an attendee": {Change: map[string]any{"attendees": []string{"a@example.com\r\nx"}},
		Field: "attendees/0"},
	"21 attendees": {Change: map[string]any{
		"attendees": strings.Split(strings.Repeat("a@example.com ", 20)+"b@example.com", " ")}, Field: "attendees"},
	"no title":                  {Change: map[string]any{"summary": "  "}, Field: "summary"},
	"a line break in the title": {Change: map[string]any{"summary": "a\nb"}, Field: "summary"},
	"control characters":        {Change: map[string]any{"description": "\x1b[2J"}, Field: "description"},
	"a long description": {Change: map[string]any{"description": strings.Repeat("x", 8193)},
		Field: "description"},
	"another way to tell": {Change: map[string]any{"sendUpdates": "ALL"}, Field: "sendUpdates"},
	"another user's calendar": {Change: map[string]any{"calendarId": "userB@example.com"}, Field: "calendarId",
		Class: fault.Policy},
	"a colour":    {Change: map[string]any{"colorId": "1"}, Field: "colorId"},
	"no last day": {Change: map[string]any{"allDay": true, "start": "2027-01-05", "end": nil}, Field: "end"},
}

func TestNormalizeTimeOffset(t *testing.T) {
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
		"a year ago": {at("2025-11-20T12:00:00Z", "2025-11-20T12:30:00Z", ""),
			"2025-11-20T12:00:00Z", "2025-11-20T12:30:00Z"},
		"ten years ahead, 14 days long": {at("2036-11-21T12:00:00Z", "2036-12-05T12:00:00Z", ""),
			"2036-11-21T12:00:00Z", "2036-12-05T12:00:00Z"},
		"a zone of three parts": {at("2027-01-05T10:00:00", "2027-01-05T11:00:00",
			"America/Argentina/Buenos_Aires"), "2027-01-05T10:00:00-03:00", "2027-01-05T11:00:00-03:00"},
	} {
		t.Run(name, func(t *testing.T) {
			raw, ok := suite.Holds(t, with(c.change))
			var a calendar.Args
			if !ok || json.Unmarshal(raw, &a) != nil || a.Start != c.start || a.End != c.end {
				t.Errorf("Normalize = %s; want %s to %s", raw, c.start, c.end)
			}
		})
	}
}

// TestSpellingsOfARule checks rules that models and other calendars write. The card and the event have one spelling.
func TestSpellingsOfARule(t *testing.T) {
	for _, spelled := range []string{"FREQ=WEEKLY;BYDAY=TU,TH;COUNT=4", "rrule:freq=weekly;byday=tu,th;count=4",
		"RRULE:FREQ=WEEKLY;BYDAY=TU,TH;COUNT=4;", "RRULE: FREQ=WEEKLY; BYDAY=TU, TH; COUNT=4"} {
		raw, ok := suite.Holds(t, with(rule(spelled)))
		var a calendar.Args
		if !ok || json.Unmarshal(raw, &a) != nil || a.Recurrence[0] != "RRULE:FREQ=WEEKLY;BYDAY=TU,TH;COUNT=4" {
			t.Errorf("%q: %s", spelled, raw)
		}
	}
	for spelled, why := range map[string]string{
		"RRULE:FREQ=HOURLY;COUNT=3":                  "the value of FREQ in the rule is not accepted",
		"RRULE:FREQ=DAILY;UNTIL=20270110T235959":     "the value of UNTIL in the rule is not accepted",
		"RRULE:FREQ=DAILY;BYHOUR=9;COUNT=3":          "only have the parts BYDAY, BYMONTH,",
		"DTSTART:20270105T100000Z\nRRULE:FREQ=DAILY": "a rule such as RRULE:FREQ=WEEKLY;COUNT=10 is required",
	} {
		if _, err := newTool().Normalize(with(rule(spelled))); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v; want an error with %q", spelled, err, why)
		}
	}
}

func TestNormalizeNotifyDefault(t *testing.T) {
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
		t.Errorf("without attendees it is %s", raw)
	}
}

// previews are what a person reads before approving an event.
var previews = map[string]toolstest.Shown{
	"weekday, zone and offset": {Change: at("2027-01-05T10:00:00", "2027-01-05T11:00:00", "Europe/Berlin"),
		Want: []string{"Starts: Tuesday, 5 January 2027, 10:00 (Europe/Berlin, UTC+01:00)"}},
	"offset alone": {Want: []string{"Starts: Tuesday, 5 January 2027, 10:00 (UTC+00:00)"}},
	"doubled hour": {Change: at("2027-10-31T02:30:00", "2027-10-31T02:45:00", "Europe/Berlin"),
		Want: []string{"UTC+02:00", "! On that day, clocks in Europe/Berlin show the time of the start twice. " +
			"This is the one at UTC+02:00."}},
	"all day": {Change: map[string]any{"allDay": true, "start": "2027-01-05", "end": "2027-01-07"},
		Want: []string{"Days: Tuesday, 5 January 2027 to Wednesday, 6 January 2027"}},
	"one day": {Change: map[string]any{"allDay": true, "start": "2027-01-05", "end": "2027-01-06"},
		Want: []string{"Day: Tuesday, 5 January 2027"}},
	"past": {Change: at("2026-11-20T10:00:00Z", "2026-11-20T11:00:00Z", ""),
		Want: []string{"! The event begins in the past."}},
	"recurrence": {Change: rule("RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,TH;COUNT=4"),
		Want: []string{"Every 2 weeks on Tuesday, Thursday; 4 in all, the last on " + "Thursday, 21 January 2027",
			"RRULE:FREQ=WEEKLY;INTERVAL=2;BYDAY=TU,TH;COUNT=4"}},
	"first day not in rule": {Change: rule("RRULE:FREQ=MONTHLY;BYDAY=-1FR;COUNT=2"),
		Want: []string{"on the last Friday; 3 in all", "! The rule does not include the first day. The event takes " +
			"place on that day too: 3 times in all."}},
	"first day not in weekly rule": {Change: rule("RRULE:FREQ=WEEKLY;BYDAY=MO;COUNT=3"),
		Want: []string{"Every week on Monday; 4 in all, the last on Monday, 25 January 2027"}},
	"first day not in rule, until": {Change: rule("RRULE:FREQ=WEEKLY;BYDAY=WE;UNTIL=20270120T100000Z"),
		Want: []string{"on Wednesday; 4 in all, the last on Wednesday, 20 January 2027", "4 times in all"}},
	"invitations": {Change: map[string]any{"attendees": []string{"a@example.com", "b@example.com"}},
		Want: []string{"with 2 guests", "Invited: a@example.com\nb@example.com",
			"Invitations: Google e-mails an invitation to everyone invited"}},
	"punycode": {Change: map[string]any{"attendees": []string{"u@xn--exmple-4nf.com"}},
		Want: []string{"u@xn--exmple-4nf.com (shown as u@",
			"! Invited: the domain of u@xn--exmple-4nf.com is written with letters from outside ASCII"}},
	"a link's target": {Change: map[string]any{"description": "<a href='https://evil.example'>Join Meet</a>"},
		Want: []string{"Links lead to: https://evil.example", "<a href='https://evil.example'>Join Meet</a>"}},
	"hidden characters": {Change: map[string]any{"summary": "a\u202eb"},
		Want: []string{"Title: a⟨U+202E⟩b", "! Title: there are characters that cannot be seen"}},
	"video call": {Change: map[string]any{"meet": true, "location": "Room 1"},
		Want: []string{"A Google Meet link will be added", "Location: Room 1"}},
}

func TestSummaryWithoutDescription(t *testing.T) {
	args, _ := suite.Holds(t, with(map[string]any{"attendees": []string{"a@example.com"}, "description": "SECRET"}))
	want := "Created the event “x” on Tuesday, 5 January 2027, 10:00 (UTC+00:00) with a@example.com."
	if got := newTool().Summary(args); got != want {
		t.Errorf("Summary = %q", got)
	}
}
