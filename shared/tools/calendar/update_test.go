package calendar_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	calendarapi "google.golang.org/api/calendar/v3"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/testkit/toolstest"
	"github.com/countersign-run/countersign/shared/tools/calendar"
)

const patch = "calendar.events.patch"

// shown is an event as the server has read it, with the change.
func shown(change map[string]any) map[string]any {
	event := map[string]any{"summary": "Lunch", "start": "2027-01-05T10:00:00Z", "end": "2027-01-05T11:00:00Z",
		"attendees": []string{"a@example.com", "b@example.com"}}
	maps.Copy(event, change)
	return map[string]any{"etag": `"1"`, "event": event}
}

// updating is the tool with a new title for an event.
var updating = toolstest.Suite{
	Tool: calendar.NewUpdate(nil, calendar.Options{Now: func() time.Time { return today }}),
	Args: map[string]any{"eventId": "abcdef", "summary": "x", "start": "2027-01-06T10:00:00Z",
		"removeAttendees": []string{"b@example.com"}, "before": shown(nil)},
	Other: map[string]map[string]any{
		"eventId": {"eventId": "ghijkl", "before": nil, "removeAttendees": nil}, "summary": {"summary": "another"},
		"start": {"start": "2027-01-05T09:00:00Z"}, "end": {"end": "2027-01-06T12:00:00Z"},
		"timeZone":        {"timeZone": "Europe/Berlin", "start": "2027-01-06T10:00:00"},
		"location":        {"location": "Room 1"},
		"description":     {"description": "Agenda"},
		"addAttendees":    {"addAttendees": []string{"c@example.com"}},
		"removeAttendees": {"removeAttendees": []string{"a@example.com"}},
		"sendUpdates":     {"sendUpdates": "none"},
		"before":          {"before": shown(map[string]any{"summary": "Dinner"})},
	},
	Fixed: map[string]any{"sendUpdates": "all"},
	Free:  []string{"summary", "location", "description", "before"},
	Labels: []string{"Event", "Id", "Which", "Title was", "Title becomes", "Starts", "Ends", "Start was", "End was",
		"Start becomes", "End becomes", "Location was", "Location becomes", "Description was", "Description becomes",
		"Links lead to", "Newly invited", "No longer invited", "Stay invited", "Notified"},
	Texts: map[string]string{"summary": "Title becomes", "location": "Location becomes",
		"description": "Description becomes"},
	Reached: func(args map[string]any) (all []tool.Target) {
		if args["addAttendees"] != nil {
			all = append(all, tool.Target{Kind: "event", Value: args["eventId"].(string)})
		}
		if args["before"] != nil {
			all = append(all, tool.Addresses([]string{"a@example.com", "b@example.com"})...)
		}
		return all
	},
	Addresses: []toolstest.Addresses{{Argument: "addAttendees", Label: "Newly invited"}},
	Previews: map[string]toolstest.Shown{
		"what it was and becomes": {Want: []string{"Change a calendar event with 1 guest", "Event: Lunch",
			"Title was: Lunch", "Title becomes: x", "Start was: Tuesday, 5 January 2027",
			"Start becomes: Wednesday, 6 January",
			"End becomes: Wednesday, 6 January 2027, 11:00", "No longer invited: b@example.com",
			"Stay invited: a@example.com", "Notified: Google e-mails the change to everyone invited"}},
		"a removed text": {
			Change: map[string]any{"location": "", "before": shown(map[string]any{"location": "Room 1"})},
			Want:   []string{"Location was: Room 1", "Location becomes: (none)"}},
		"a link": {Change: map[string]any{"description": `<a href="https://evil.example/x">y</a>`},
			Want: []string{"Links lead to: https://evil.example/x"}},
		"all-day": {Change: map[string]any{"start": "2027-01-06", "end": "2027-01-08"},
			Want: []string{"Start becomes: Wednesday, 6 January 2027",
				"End becomes: Thursday, 7 January 2027 (last day)"}},
		"the past": {Change: map[string]any{"start": "2026-11-06T10:00:00Z"},
			Want: []string{"! The event begins in the past."}},
	},
	Refused: map[string]toolstest.Refused{
		"no change": {Change: map[string]any{"summary": nil, "start": nil, "removeAttendees": nil,
			"before": nil}},
		"an id of another form": {Change: map[string]any{"eventId": "a/b/c/d"}, Field: "eventId"},
		"a blank title":         {Change: map[string]any{"summary": " "}, Field: "summary"},
		"no time":               {Change: map[string]any{"start": "noon"}, Field: "start"},
		"a zone alone":          {Change: map[string]any{"start": nil, "timeZone": "Europe/Berlin"}, Field: "timeZone"},
		"no address":            {Change: map[string]any{"addAttendees": []string{"evil"}}, Field: "addAttendees/0"},
		"added and removed": {Change: map[string]any{"addAttendees": []string{"b@example.com"}},
			Field: "removeAttendees"},
		"control characters": {Change: map[string]any{"location": "a\u0007"}, Field: "location"},
	},
	Unsaid: []string{"evil"},
}

func TestUpdateSuite(t *testing.T) { updating.Run(t) }

// newUpdate is a calendar with one event, and the completed call that changes it.
func newUpdate(t *testing.T, args map[string]any) *env {
	t.Helper()
	w := newEnv(t, scope)
	if _, err := w.Tool.Execute(t.Context(), w.Call); err != nil {
		t.Fatal(err)
	}
	w.Tool = calendar.NewUpdate(fakegoogle.Accounts{}, calendar.Options{Endpoint: w.URL + "/calendar/v3/",
		Timeout: await.Most, Now: func() time.Time { return today }})
	w.Call = tool.Call{UID: toolstest.GoogleUser, ActionID: "action_9876543210"}
	w.complete(t, w.Events()[0]["id"].(string), args)
	w.Effects, w.Result = w.toldAll, w.namesEvent
	return w
}

// complete makes the arguments those of a call about the event.
func (w *env) complete(t *testing.T, id string, args map[string]any) {
	t.Helper()
	if err := w.completed(t, id, args); err != nil {
		t.Fatal(err)
	}
}

func (w *env) completed(t *testing.T, id string, args map[string]any) (err error) {
	t.Helper()
	args = maps.Clone(args)
	args["eventId"] = id
	raw, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	if w.Call.Args, err = w.Tool.Normalize(raw); err == nil {
		w.Call.Args, err = w.Tool.Complete(t.Context(), w.Call)
	}
	return err
}

var dinner = map[string]any{"summary": "Dinner", "start": "2027-01-05T19:00:00", "timeZone": "Europe/Berlin",
	"location": "Rome", "addAttendees": []string{"b@example.com"}, "removeAttendees": []string{"a@example.com"}}

func TestUpdateReconcileEachFault(t *testing.T) {
	toolstest.Settling{Open: func(t *testing.T) *toolstest.Provider { return &newUpdate(t, dinner).Provider },
		Broken: calendar.NewUpdate(toolstest.Panicking{}, calendar.Options{}),
		Acts:   []string{get, patch}, Found: true, Cases: changing(patch, map[string]toolstest.Settled{
			"500 after":        made.After(patch, fakegoogle.Fault{Kind: fakegoogle.StatusAfter, Status: 500}),
			"hangs after":      made.After(patch, kind(fakegoogle.HangAfter)),
			"redirected":       made.After(patch, kind(fakegoogle.Redirect)),
			"changed just now": made.After(patch, status(412, "conditionNotMet")),
			"429":              made.After(patch, status(429, "rateLimitExceeded")),
			"403 of a guest": unmade(fault.Tool, "provider_refused").
				After(patch, status(403, "forbiddenForNonOrganizer")),
		})}.Run(t)
}

// TestUpdateAsShown changes all parts, and only those.
func TestUpdateAsShown(t *testing.T) {
	w := newUpdate(t, dinner)
	p, err := w.Tool.Preview(w.Call.Args)
	for _, want := range []string{"Title was: x", "Title becomes: Dinner", "Start was: Tuesday, 5 January 2027, 10:00",
		"Start becomes: Tuesday, 5 January 2027, 19:00 (Europe/Berlin",
		"Newly invited: b@example.com", "No longer invited: a@example.com"} {
		if err != nil || !strings.Contains(words(p), want) {
			t.Errorf("the card lacks %q:\n%s %v", want, words(p), err)
		}
	}
	if _, err := w.Tool.Execute(t.Context(), w.Call); err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(w.Events()[0])
	for _, want := range []string{`"summary":"Dinner"`, `"dateTime":"2027-01-05T19:00:00+01:00"`, `"location":"Rome"`,
		`"attendees":[{"email":"b@example.com"}]`, `"hangoutLink"`, `"countersignAction"`} {
		if !strings.Contains(string(got), want) {
			t.Errorf("the event lacks %s:\n%s", want, got)
		}
	}
	if _, err := w.Tool.Execute(t.Context(), w.Call); err != nil || w.Calls(patch) != 1 {
		t.Errorf("a second time: %v, %d patches; want one", err, w.Calls(patch))
	}
}

// TestUpdateChangedEvent has the event change between the card and the change.
func TestUpdateChangedEvent(t *testing.T) {
	for name, tt := range map[string]struct{ change, shows string }{
		"location": {`{"location":"Oslo"}`, "Location was: Oslo"},
		"a guest's yes": {`{"attendees":[{"email":"a@example.com","responseStatus":"accepted"}]}`,
			"Location was: (none)"},
		"already so":     {`{"summary":"Dinner"}`, "Title was: Dinner"},
		"another's mark": {`{"extendedProperties":{"private":{"countersignChange":"other"}}}`, "Title was: x"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newUpdate(t, dinner)
			var fields map[string]any
			if err := json.Unmarshal([]byte(tt.change), &fields); err != nil {
				t.Fatal(err)
			}
			if err := w.ChangeEvent("me@example.com", w.Events()[0]["id"].(string), fields); err != nil {
				t.Fatal(err)
			}
			_, err := w.Tool.Execute(t.Context(), w.Call)
			again := tool.AskedAnew(err)
			if again == nil || w.Effects() != 0 {
				t.Fatalf("changing it: %v, %d changes; want a question", err, w.Effects())
			}
			if w.Call.Args, err = w.Tool.Normalize(again); err != nil {
				t.Fatal(err)
			}
			if p, err := w.Tool.Preview(w.Call.Args); err != nil || !strings.Contains(words(p), tt.shows) {
				t.Errorf("the new card is\n%s, %v; want %q in it", words(p), err, tt.shows)
			}
			if _, err := w.Tool.Execute(t.Context(), w.Call); err != nil || w.Effects() != 1 {
				t.Errorf("changing what was shown anew: %v, %d changes", err, w.Effects())
			}
		})
	}
}

func TestUpdateRefused(t *testing.T) {
	at := func(s string) map[string]any { return map[string]any{"dateTime": s, "timeZone": "Europe/Berlin"} }
	event := func(id string, more map[string]any) map[string]any {
		e := map[string]any{"id": id, "summary": "Theirs", "start": at("2027-01-05T10:00:00+01:00"),
			"end": at("2027-01-05T11:00:00+01:00"), "attendees": []any{map[string]any{"email": "a@example.com"}}}
		maps.Copy(e, more)
		return e
	}
	boss := map[string]any{"email": "boss@example.com"}
	for name, tt := range map[string]struct {
		event, args map[string]any
		class       fault.Class
		field       string
	}{
		"another's":            {event("e", map[string]any{"organizer": boss}), dinner, fault.Policy, ""},
		"a birthday":           {event("e", map[string]any{"eventType": "birthday"}), dinner, fault.Policy, ""},
		"more guests than all": {event("e", map[string]any{"attendeesOmitted": true}), dinner, fault.Policy, ""},
		"deleted":              {event("e", map[string]any{"status": "cancelled"}), dinner, fault.Tool, ""},
		"nobody to remove": {event("e", nil), map[string]any{"removeAttendees": []string{"x@example.com"}},
			fault.Validation, "removeAttendees"},
		"already invited": {event("e", nil), map[string]any{"addAttendees": []string{"A@example.com"}},
			fault.Validation, "addAttendees"},
		"as it is":        {event("e", nil), map[string]any{"summary": "Theirs"}, fault.Validation, ""},
		"ends too early":  {event("e", nil), map[string]any{"end": "2027-01-05T09:00:00"}, fault.Validation, "end"},
		"half an all-day": {event("e", nil), map[string]any{"start": "2027-01-05"}, fault.Validation, "end"},
		"another first day of a series": {event("e", map[string]any{"recurrence": []any{"RRULE:FREQ=WEEKLY;COUNT=3"}}),
			map[string]any{"start": "2027-01-12T15:00:00"}, fault.Validation, "start"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newUpdate(t, dinner)
			if err := w.AddEvent("me@example.com", tt.event); err != nil {
				t.Fatal(err)
			}
			if tt.event["status"] != nil {
				if err := w.owner.Events.Delete("primary", w.Events()[1]["id"].(string)).Do(); err != nil {
					t.Fatal(err)
				}
			}
			err := w.completed(t, w.Events()[1]["id"].(string), tt.args)
			if f := fault.As(err); err == nil || f.Class != tt.class || f.Field != tt.field {
				t.Errorf("the call is completed with %v; want %s %s", err, tt.class, tt.field)
			}
		})
	}
}

// TestUpdateSeries changes the time of day of a series, and then one of its repetitions.
func TestUpdateSeries(t *testing.T) {
	w := newUpdate(t, dinner)
	at := func(clock string) *calendarapi.EventDateTime {
		return &calendarapi.EventDateTime{DateTime: "2027-01-05T" + clock, TimeZone: "Europe/Berlin"}
	}
	if _, err := w.owner.Events.Insert("primary", &calendarapi.Event{Id: "abcdef", Summary: "Weekly",
		Start: at("10:00:00"), End: at("11:00:00"),
		Recurrence: []string{"RRULE:FREQ=WEEKLY;COUNT=3"}}).Do(); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ id, start, shows string }{
		{"abcdef", "2027-01-05T09:00:00", "Which: The whole series"},
		{"abcdef_20270112T080000Z", "2027-01-13T15:00:00", "Which: One repetition; the others stay as they are"},
	} {
		w.Call.ActionID += "x"
		w.complete(t, tt.id, map[string]any{"start": tt.start})
		if p, err := w.Tool.Preview(w.Call.Args); err != nil || !strings.Contains(words(p), tt.shows) {
			t.Errorf("the card is\n%s, %v; want %q in it", words(p), err, tt.shows)
		}
		if _, err := w.Tool.Execute(t.Context(), w.Call); err != nil {
			t.Fatal(err)
		}
		if out, err := w.Tool.Reconcile(t.Context(), w.Call); err != nil || out.Verdict != tool.Done {
			t.Errorf("Reconcile = %+v, %v", out, err)
		}
	}
	list, err := w.owner.Events.List("primary").SingleEvents(true).OrderBy("startTime").TimeZone("Europe/Berlin").Do()
	if err != nil {
		t.Fatal(err)
	}
	var starts []string
	for _, ev := range list.Items {
		if ev.Summary == "Weekly" {
			starts = append(starts, ev.Start.DateTime)
		}
	}
	if got := strings.Join(starts, " "); got != "2027-01-05T09:00:00+01:00 2027-01-13T15:00:00+01:00 "+
		"2027-01-19T09:00:00+01:00" {
		t.Errorf("the repetitions begin at %s", got)
	}
}

// TestUpdateCheckedText checks what the taint check examines.
func TestUpdateCheckedText(t *testing.T) {
	args := updating.With(map[string]any{"description": "Agenda\nmore", "before": shown(map[string]any{
		"description": "Agenda", "location": "https://eve.example/"})})
	args, err := updating.Tool.Normalize(args)
	if err != nil {
		t.Fatal(err)
	}
	rest, changes, err := updating.Tool.Changes(args)
	if err != nil || strings.Contains(string(rest), "eve.example") || len(changes) != 2 ||
		changes[1] != (tool.Change{Stood: "Agenda", Added: "Agenda\nmore"}) {
		t.Errorf("the call changes %+v, besides %s, %v", changes, rest, err)
	}
}
