package calendar_test

import (
	"encoding/json"
	"errors"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	calendarapi "google.golang.org/api/calendar/v3"
	"google.golang.org/api/option"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/tool"
	"github.com/countersign-run/countersign/shared/tools/calendar"
)

const scope = "https://www.googleapis.com/auth/calendar.events"

// world is a local Calendar with a tool that uses it, and a client of its owner.
type world struct {
	*fakegoogle.Server
	tool   *tool.Tool
	owner  *calendarapi.Service
	mu     sync.Mutex                    // an abandoned call may still be on its way when the next one comes
	faults map[string][]fakegoogle.Fault // by operation, used up in order
}

func newWorld(t *testing.T, scopes ...string) *world {
	t.Helper()
	w := &world{faults: map[string][]fakegoogle.Fault{}}
	var err error
	w.Server, err = fakegoogle.New(fakegoogle.Options{
		User: func(b string) (string, []string, bool) { return "me@example.com", scopes, b == "good" },
		Fault: func(op string) (f fakegoogle.Fault) {
			w.mu.Lock()
			defer w.mu.Unlock()
			if q := w.faults[op]; len(q) > 0 {
				f, w.faults[op] = q[0], q[1:]
			}
			return f
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(w)
	t.Cleanup(srv.Close)
	endpoint := srv.URL + "/calendar/v3/"
	w.tool = calendar.New(fakegoogle.Accounts{},
		calendar.Options{Endpoint: endpoint, Timeout: 300 * time.Millisecond, Now: func() time.Time { return today }})
	if w.owner, err = calendarapi.NewService(t.Context(), option.WithHTTPClient(fakegoogle.Bearer("good")),
		option.WithEndpoint(endpoint)); err != nil {
		t.Fatal(err)
	}
	return w
}

func call(t *testing.T, w *world) tool.Call {
	t.Helper()
	args, err := w.tool.Normalize(with(map[string]any{"attendees": []string{"a@example.com"}, "meet": true}))
	if err != nil {
		t.Fatal(err)
	}
	return tool.Call{UID: "good", ActionID: "action_0123456789", Args: args}
}

// carryOut executes a call as the loop does.
func (w *world) carryOut(t *testing.T, c tool.Call) (string, json.RawMessage, error) {
	t.Helper()
	var err error
	for range 3 {
		var out json.RawMessage
		if out, err = w.tool.Execute(t.Context(), c); err == nil {
			return "completed", out, nil
		}
		if tool.IsTransient(err) {
			continue
		}
		if !tool.IsAmbiguous(err) {
			return "failed", nil, err
		}
		settled, serr := w.tool.Reconcile(t.Context(), c)
		for range 2 {
			if serr != nil {
				settled, serr = w.tool.Reconcile(t.Context(), c)
			}
		}
		switch {
		case serr != nil:
			t.Fatal(serr)
		case settled.Verdict == tool.Done:
			return "completed", settled.Result, nil
		case settled.Verdict == tool.Unknown:
			return "needs_review", nil, err
		}
	}
	return "failed", nil, err
}

func status(code int, reason string) fakegoogle.Fault {
	return fakegoogle.Fault{Kind: fakegoogle.StatusBefore, Status: code, Reason: reason, Text: "Bearer ya29.SECRET"}
}

func kind(k fakegoogle.Kind) fakegoogle.Fault { return fakegoogle.Fault{Kind: k} }

// TestEveryFaultIsSettled implements reliability §2, the table "How C18-C20 are settled", column "Calendar".
func TestEveryFaultIsSettled(t *testing.T) {
	const insert, get = "calendar.events.insert", "calendar.events.get"
	for name, c := range map[string]struct {
		insert, get []fakegoogle.Fault
		want        string
		events      int
		class       fault.Class
		code        fault.Code
	}{
		"nothing breaks": {nil, nil, "completed", 1, "", ""},
		"503 before":     {[]fakegoogle.Fault{status(503, "")}, nil, "completed", 1, "", ""},
		"500 after (PR-014)": {[]fakegoogle.Fault{{Kind: fakegoogle.StatusAfter, Status: 500}}, nil,
			"completed", 1, "", ""},
		"reset before":      {[]fakegoogle.Fault{kind(fakegoogle.ResetBefore)}, nil, "completed", 1, "", ""},
		"reset after":       {[]fakegoogle.Fault{kind(fakegoogle.ResetAfter)}, nil, "completed", 1, "", ""},
		"hangs before":      {[]fakegoogle.Fault{kind(fakegoogle.HangBefore)}, nil, "completed", 1, "", ""},
		"hangs after":       {[]fakegoogle.Fault{kind(fakegoogle.HangAfter)}, nil, "completed", 1, "", ""},
		"empty 200":         {[]fakegoogle.Fault{kind(fakegoogle.EmptyAfter)}, nil, "completed", 1, "", ""},
		"200 without an id": {[]fakegoogle.Fault{kind(fakegoogle.OddAfter)}, nil, "completed", 1, "", ""},
		"answer cut":        {[]fakegoogle.Fault{kind(fakegoogle.CutAfter)}, nil, "completed", 1, "", ""},
		"redirected":        {[]fakegoogle.Fault{kind(fakegoogle.Redirect)}, nil, "completed", 1, "", ""},
		"429": {[]fakegoogle.Fault{status(429, "rateLimitExceeded")}, nil, "completed", 1, "",
			""},
		"403 for the rate": {[]fakegoogle.Fault{status(403, "userRateLimitExceeded")}, nil, "completed", 1, "",
			""},
		"lost, then get 503": {[]fakegoogle.Fault{kind(fakegoogle.ResetAfter)},
			[]fakegoogle.Fault{status(503, "")}, "completed", 1, "", ""},
		"lost, then get odd": {[]fakegoogle.Fault{kind(fakegoogle.ResetAfter)},
			[]fakegoogle.Fault{kind(fakegoogle.OddAfter)}, "completed", 1, "", ""},
		"lost, then access is": {[]fakegoogle.Fault{kind(fakegoogle.ResetAfter)},
			[]fakegoogle.Fault{status(401, "authError")}, "needs_review", 1, fault.Tool, "provider_failed"},
		"400": {[]fakegoogle.Fault{status(400, "invalid")}, nil, "failed", 0, fault.Tool,
			"provider_refused"},
		"401": {[]fakegoogle.Fault{status(401, "authError")}, nil, "failed", 0, fault.Auth,
			fault.CodeReauth},
		"403 for the scope": {[]fakegoogle.Fault{status(403, "insufficientPermissions")}, nil, "failed", 0,
			fault.Auth, fault.CodeScope},
		"down for the whole time": {[]fakegoogle.Fault{status(503, ""), status(503, ""), status(503, "")}, nil,
			"failed", 0, fault.Tool, "provider_failed"},
		"slow but well": {[]fakegoogle.Fault{{Delay: 20 * time.Millisecond}}, nil, "completed", 1, "", ""},
		"before, then after again": {[]fakegoogle.Fault{status(503, ""), kind(fakegoogle.ResetAfter)}, nil,
			"completed", 1, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, scope)
			w.faults[insert], w.faults[get] = c.insert, c.get
			got, out, err := w.carryOut(t, call(t, w))
			if got != c.want || len(w.Events()) != c.events {
				t.Errorf("%s with %d events (%v); want %s with %d", got, len(w.Events()), err, c.want, c.events)
			}
			if got == "completed" && (!strings.Contains(string(out), `"eventId":"`+w.Events()[0]["id"].(string)) ||
				!strings.Contains(string(out), "meet.google.com")) {
				t.Errorf("the answer is %s", out)
			}
			var e *fault.Error
			if c.class != "" && (!errors.As(err, &e) || e.Class != c.class || e.Code != c.code) {
				t.Errorf("error %v; want %s %s", err, c.class, c.code)
			}
			if err != nil && strings.Contains(err.Error(), "SECRET") {
				t.Errorf("the provider's words are repeated: %v", err)
			}
		})
	}
}

func TestTheSameActionMakesOneEventHoweverOften(t *testing.T) {
	w := newWorld(t, scope)
	c := call(t, w)
	if out, err := w.tool.Reconcile(t.Context(), c); err != nil || out.Verdict != tool.NotDone {
		t.Errorf("before: %+v, %v; want not_done", out, err)
	}
	first, err := w.tool.Execute(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	again, err := w.tool.Execute(t.Context(), c) // 409, and the event is the action's own (PR-011)
	if err != nil || string(again) != string(first) || len(w.Events()) != 1 {
		t.Errorf("again = %s, %v with %d events; want %s and 1", again, err, len(w.Events()), first)
	}
}

func TestADeletedEventIsDoneAndNotMadeAgain(t *testing.T) {
	w := newWorld(t, scope)
	c := call(t, w)
	if _, err := w.tool.Execute(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := w.owner.Events.Delete("primary", w.Events()[0]["id"].(string)).Do(); err != nil {
		t.Fatal(err)
	}
	out, err := w.tool.Reconcile(t.Context(), c)
	if err != nil || out.Verdict != tool.Done || !strings.Contains(string(out.Result), `"cancelled":true`) {
		t.Errorf("Reconcile = %+v, %v; want done and cancelled", out, err)
	}
	if res, err := w.tool.Execute(t.Context(), c); err != nil || !strings.Contains(string(res), `"cancelled":true`) ||
		len(w.Events()) != 1 {
		t.Errorf("Execute = %s, %v with %d events; want the cancelled one (PR-013)", res, err, len(w.Events()))
	}
}

func TestAForeignEventUnderTheIdIsForAPerson(t *testing.T) {
	w := newWorld(t, scope)
	c := call(t, w)
	if _, err := w.tool.Execute(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	ev := &calendarapi.Event{ExtendedProperties: &calendarapi.EventExtendedProperties{
		Private: map[string]string{"countersignAction": "other"}}}
	if _, err := w.owner.Events.Patch("primary", w.Events()[0]["id"].(string), ev).Do(); err != nil {
		t.Fatal(err)
	}
	got, _, err := w.carryOut(t, c)
	if got != "needs_review" || len(w.Events()) != 1 {
		t.Errorf("%s, %v with %d events; want needs_review", got, err, len(w.Events()))
	}
}

func TestAReadOnlyScopeIsToldApart(t *testing.T) {
	w := newWorld(t, "https://www.googleapis.com/auth/calendar.readonly")
	if _, err := w.tool.Execute(t.Context(), call(t, w)); !fault.Is(err, fault.Auth, fault.CodeScope) {
		t.Errorf("Execute = %v; want scope_missing", err)
	}
}

func TestWhatIsApprovedIsWhatIsStored(t *testing.T) {
	w := newWorld(t, scope)
	change := rule("RRULE:FREQ=WEEKLY;COUNT=3")
	change["attendees"], change["location"], change["description"], change["sendUpdates"] = []string{"a@example.com"},
		"Room 1", "Agenda\nall", "externalOnly"
	args, err := w.tool.Normalize(with(change))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.tool.Execute(t.Context(), tool.Call{UID: "good", ActionID: "a", Args: args}); err != nil {
		t.Fatal(err)
	}
	got, _ := json.Marshal(w.Events()[0])
	for _, want := range []string{
		`"start":{"dateTime":"2027-01-05T10:00:00+01:00","timeZone":"Europe/Berlin"}`,
		`"recurrence":["RRULE:FREQ=WEEKLY;COUNT=3"]`,
		`"attendees":[{"email":"a@example.com"}]`, `"location":"Room 1"`, `"description":"Agenda\nall"`,
		`"sendUpdates":"externalOnly"`, `"user":"me@example.com"`,
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("the event lacks %s:\n%s", want, got)
		}
	}
}
