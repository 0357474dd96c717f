package calendar_test

import (
	"encoding/json"
	"strings"
	"testing"

	calendarapi "google.golang.org/api/calendar/v3"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/testkit/toolstest"
	"github.com/countersign-run/countersign/shared/tools/calendar"
)

const remove = "calendar.events.delete"

// newDeletion is a calendar with one event, and the call that takes it back.
func newDeletion(t *testing.T) *env {
	t.Helper()
	w := newEnv(t, scope)
	made, err := w.Tool.Execute(t.Context(), w.Call)
	if err != nil {
		t.Fatal(err)
	}
	c := w.Tool.Compensate(w.Call.Args, made)
	if c == nil || c.Tool != calendar.Delete || c.Title != "Delete the event" {
		t.Fatalf("what was made is taken back by %+v", c)
	}
	w.Tool = calendar.NewDelete(fakegoogle.Accounts{},
		calendar.Options{Endpoint: w.URL + "/calendar/v3/", Timeout: await.Most})
	raw, err := json.Marshal(c.Args)
	if err == nil {
		raw, err = w.Tool.Normalize(raw)
	}
	if err != nil {
		t.Fatal(err)
	}
	w.Call = tool.Call{UID: toolstest.GoogleUser, ActionID: "action_9876543210", Args: raw}
	w.Effects, w.Result = w.toldAll, w.namesEvent
	return w
}

func TestDeleteReconcileEachFault(t *testing.T) {
	toolstest.Settling{Open: func(t *testing.T) *toolstest.Provider { return &newDeletion(t).Provider },
		Broken: calendar.NewDelete(toolstest.Panicking{}, calendar.Options{}),
		Acts:   []string{get, remove}, Absence: true, Found: true, Cases: changing(remove, map[string]toolstest.Settled{
			"500 after":        made.After(remove, fakegoogle.Fault{Kind: fakegoogle.StatusAfter, Status: 500}),
			"hangs after":      made.After(remove, kind(fakegoogle.HangAfter)),
			"redirected":       made.After(remove, kind(fakegoogle.Redirect)),
			"changed just now": made.After(remove, status(412, "conditionNotMet")),
			"429":              made.After(remove, status(429, "rateLimitExceeded")),
			"cannot be read":   made.After(get, status(503, ""), kind(fakegoogle.OddAfter)),
			"401":              unmade(fault.Auth, fault.CodeReauth).After(get, status(401, "authError")),
		})}.Run(t)
}

func TestDeleteMissingEvent(t *testing.T) {
	w := newDeletion(t)
	if err := w.owner.Events.Delete("primary", w.Events()[0]["id"].(string)).Do(); err != nil {
		t.Fatal(err)
	}
	out, err := w.Tool.Execute(t.Context(), w.Call)
	if err != nil || !strings.Contains(string(out), `"gone":true`) || w.Effects() != 0 {
		t.Errorf("deleting it = %s, %v; want what is gone already, and nobody told again", out, err)
	}
	args := []byte(strings.Replace(string(w.Call.Args), w.Events()[0]["id"].(string), "abcdefabcdef", 1))
	w.Call.Args = args
	if out, err := w.Tool.Execute(t.Context(), w.Call); err != nil || !strings.Contains(string(out), `"gone":true`) {
		t.Errorf("deleting what was never there = %s, %v", out, err)
	}
}

// TestDeleteChangedEvent has an event's owner change it before it is deleted.
func TestDeleteChangedEvent(t *testing.T) {
	for name, tt := range map[string]struct {
		change *calendarapi.Event
		want   string // the changed part that the error names, or "" if the event is deleted
		shows  string
	}{
		"title":       {&calendarapi.Event{Summary: "Dinner"}, "(title)", "Dinner"},
		"description": {&calendarapi.Event{Description: "bring the plans"}, "(description)", "bring the plans"},
		"guests": {&calendarapi.Event{Attendees: []*calendarapi.EventAttendee{{Email: "A@example.com"},
			{Email: "new@example.com"}}}, "(guests)", "new@example.com"},
		"time": {&calendarapi.Event{Start: &calendarapi.EventDateTime{DateTime: "2027-01-05T12:00:00Z"},
			End: &calendarapi.EventDateTime{DateTime: "2027-01-05T13:00:00Z"}}, "(time)", "12:00"},
		"several": {&calendarapi.Event{Summary: "Dinner", Location: "Rome"}, "(title, location)", "Rome"},
		"a guest's yes": {guests(&calendarapi.EventAttendee{Email: "A@Example.com",
			ResponseStatus: "accepted"}), "", ""},
		"the organizer among the guests": {guests(&calendarapi.EventAttendee{Email: "a@example.com"},
			&calendarapi.EventAttendee{Email: "me@example.com", Organizer: true}), "", ""},
		"its colour": {&calendarapi.Event{ColorId: "4"}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newDeletion(t)
			if _, err := w.owner.Events.Patch("primary", w.Events()[0]["id"].(string), tt.change).Do(); err != nil {
				t.Fatal(err)
			}
			_, err := w.Tool.Execute(t.Context(), w.Call)
			if tt.want == "" {
				if err != nil || w.Effects() != 1 {
					t.Errorf("deleting it: %v, %d deletions; want one", err, w.Effects())
				}
				return
			}
			args := tool.AskedAnew(err)
			if args == nil || !strings.Contains(fault.As(err).Message, tt.want) || w.Effects() != 0 {
				t.Fatalf("deleting it: %v, %d deletions; want a question about what is different: %s", err, w.Effects(),
					tt.want)
			}
			if w.Call.Args, err = w.Tool.Normalize(args); err != nil {
				t.Fatal(err)
			}
			if p, err := w.Tool.Preview(w.Call.Args); err != nil || !strings.Contains(words(p), tt.shows) {
				t.Errorf("the new card is\n%s, %v; want %q in it", words(p), err, tt.shows)
			}
			if _, err := w.Tool.Execute(t.Context(), w.Call); err != nil || w.Effects() != 1 {
				t.Errorf("deleting what was shown anew: %v, %d deletions", err, w.Effects())
			}
		})
	}
}

func guests(all ...*calendarapi.EventAttendee) *calendarapi.Event {
	return &calendarapi.Event{Attendees: all}
}

func TestDeleteForeignEvent(t *testing.T) {
	w := newDeletion(t)
	at := map[string]any{"dateTime": "2027-01-05T10:00:00Z"}
	if err := w.AddEvent("me@example.com", map[string]any{"summary": "theirs", "start": at, "end": at}); err != nil {
		t.Fatal(err)
	}
	theirs := w.Events()[1]["id"].(string)
	w.Call.Args = []byte(strings.Replace(string(w.Call.Args), w.Events()[0]["id"].(string), theirs, 1))
	if _, err := w.Tool.Execute(t.Context(), w.Call); err == nil || w.Events()[1]["status"] != "confirmed" {
		t.Errorf("an event of another make is deleted: %v, %v", err, w.Events()[1])
	}
}

func TestDeleteCardAttendees(t *testing.T) {
	del := calendar.NewDelete(nil, calendar.Options{})
	for sent, told := range map[string]string{``: "everyone invited", `,"sendUpdates":"none"`: "No one gets an e-mail",
		`,"sendUpdates":"externalOnly"`: "do not use"} {
		args, err := del.Normalize(json.RawMessage(`{"eventId":"abcdef","event":{"summary":"Lunch",` +
			`"start":"2020-01-05T10:00:00+01:00","end":"2020-01-05T11:00:00+01:00",` +
			`"attendees":["a@example.com","b@example.com"]` + sent + `}}`))
		if err != nil {
			t.Fatal(err)
		}
		p, err := del.Preview(args)
		if err != nil || p.Title != "Delete a calendar event with 2 guests" || !strings.Contains(words(p), told) ||
			!strings.Contains(words(p), "5 January 2020") {
			t.Errorf("the card is %s\n%s, %v", p.Title, words(p), err)
		}
	}
	if made := calendar.New(nil, calendar.Options{}).Compensate(json.RawMessage(`{"summary":"x","start":"","end":""}`),
		json.RawMessage(`{"eventId":"abcdef","cancelled":true}`)); made != nil {
		t.Errorf("what its owner has deleted is offered to be deleted: %+v", made)
	}
}

// words returns the fields of a preview.
func words(p tool.Preview) string {
	var b strings.Builder
	for _, f := range p.Fields {
		b.WriteString(f.Label + ": " + f.Value + "\n")
	}
	return b.String()
}
