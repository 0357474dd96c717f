package calendar_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	calendarapi "google.golang.org/api/calendar/v3"
	"google.golang.org/api/option"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/testkit/toolstest"
	"github.com/countersign-run/countersign/shared/tools/calendar"
)

const scope = "https://www.googleapis.com/auth/calendar.events"

// The operations of Calendar.
const (
	insert = "calendar.events.insert"
	get    = "calendar.events.get"
)

// env is a local Calendar with a tool that uses it, a call, and a client of its owner.
type env struct {
	*toolstest.Google
	toolstest.Provider
	owner *calendarapi.Service
}

// toldAll returns the number of events about which all guests got a notification.
func (w *env) toldAll() (n int) {
	for _, e := range w.Events() {
		if e["told"] == "all" {
			n++
		}
	}
	return n
}

// namesEvent checks that a call's result names the first event.
func (w *env) namesEvent(t *testing.T, out json.RawMessage) {
	t.Helper()
	if !strings.Contains(string(out), `"eventId":"`+w.Events()[0]["id"].(string)) {
		t.Errorf("the result is %s", out)
	}
}

func newEnv(t *testing.T, scopes ...string) *env {
	t.Helper()
	g := toolstest.OpenGoogle(t, scopes...)
	endpoint := g.URL + "/calendar/v3/"
	tl := calendar.New(fakegoogle.Accounts{}, calendar.Options{Endpoint: endpoint, Timeout: await.Most,
		Now: func() time.Time { return today }})
	args, err := tl.Normalize(with(map[string]any{"attendees": []string{"a@example.com"}, "meet": true}))
	if err != nil {
		t.Fatal(err)
	}
	w := &env{Google: g, Provider: toolstest.Provider{Tool: tl, Break: g.Break, Calls: g.Calls,
		Call:    tool.Call{UID: toolstest.GoogleUser, ActionID: "action_0123456789", Args: args},
		Effects: func() int { return len(g.Events()) }}}
	w.Result = func(t *testing.T, out json.RawMessage) {
		if !strings.Contains(string(out), `"eventId":"`+g.Events()[0]["id"].(string)) ||
			!strings.Contains(string(out), "meet.google.com") {
			t.Errorf("the answer is %s", out)
		}
	}
	if w.owner, err = calendarapi.NewService(t.Context(),
		option.WithHTTPClient(fakegoogle.Bearer(toolstest.GoogleUser)), option.WithEndpoint(endpoint)); err != nil {
		t.Fatal(err)
	}
	return w
}

var status, kind = toolstest.Status, toolstest.Kind

// What becomes of an event.
var (
	made   = toolstest.Settled{Want: toolstest.Completed, Effects: 1}
	unmade = func(class fault.Class, code fault.Code) toolstest.Settled {
		return toolstest.Settled{Want: toolstest.Failed, Class: class, Code: code}
	}
)

// TestReconcileEachFault implements reliability §2, the table "How C18-C20 are settled", column "Calendar".
func TestReconcileEachFault(t *testing.T) {
	toolstest.Settling{Open: func(t *testing.T) *toolstest.Provider { return &newEnv(t, scope).Provider },
		Broken: calendar.New(toolstest.Panicking{}, calendar.Options{}),
		Acts:   []string{insert}, Looks: []string{get}, Found: true, Cases: cases}.Run(t)
}

var cases = map[string]toolstest.Settled{
	"nothing breaks":     made,
	"503 before":         made.After(insert, status(503, "")),
	"500 after (PR-014)": made.After(insert, fakegoogle.Fault{Kind: fakegoogle.StatusAfter, Status: 500}),
	"409 after": made.After(insert,
		fakegoogle.Fault{Kind: fakegoogle.StatusAfter, Status: 409, Reason: "duplicate"}),
	"reset before":       made.After(insert, kind(fakegoogle.ResetBefore)),
	"reset after":        made.After(insert, kind(fakegoogle.ResetAfter)),
	"hangs before":       made.After(insert, kind(fakegoogle.HangBefore)),
	"hangs after":        made.After(insert, kind(fakegoogle.HangAfter)),
	"empty 200":          made.After(insert, kind(fakegoogle.EmptyAfter)),
	"200 without an id":  made.After(insert, kind(fakegoogle.OddAfter)),
	"answer cut":         made.After(insert, kind(fakegoogle.CutAfter)),
	"redirected":         made.After(insert, kind(fakegoogle.Redirect)),
	"429":                made.After(insert, status(429, "rateLimitExceeded")),
	"403 for the rate":   made.After(insert, status(403, "userRateLimitExceeded")),
	"lost, then get 503": made.After(insert, kind(fakegoogle.ResetAfter)).After(get, status(503, "")),
	"lost, then get odd": made.After(insert, kind(fakegoogle.ResetAfter)).After(get, kind(fakegoogle.OddAfter)),
	"lost, then access is": toolstest.Settled{Want: toolstest.Review, Effects: 1, Class: fault.Tool,
		Code: "provider_failed"}.After(insert, kind(fakegoogle.ResetAfter)).After(get, status(401, "authError")),
	"400":               unmade(fault.Tool, "provider_refused").After(insert, status(400, "invalid")),
	"401":               unmade(fault.Auth, fault.CodeReauth).After(insert, status(401, "authError")),
	"403 for the scope": unmade(fault.Auth, fault.CodeScope).After(insert, status(403, "insufficientPermissions")),
	"down for the whole time": unmade(fault.Tool, "provider_failed").After(insert, status(503, ""), status(503, ""),
		status(503, "")),
	"slow but well":            made.After(insert, fakegoogle.Fault{Delay: 20 * time.Millisecond}),
	"before, then after again": made.After(insert, status(503, ""), kind(fakegoogle.ResetAfter)),
}

// changing returns the faults that every tool that changes an event must settle, and those of one tool. change is the
// operation that makes the change, after the tool has read the event.
func changing(change string, more map[string]toolstest.Settled) map[string]toolstest.Settled {
	all := map[string]toolstest.Settled{
		"nothing breaks": made,
		"503 before":     made.After(change, status(503, "")),
		"reset after":    made.After(change, kind(fakegoogle.ResetAfter)),
		"empty 200":      made.After(change, kind(fakegoogle.EmptyAfter)),
		"400":            unmade(fault.Tool, "provider_refused").After(change, status(400, "invalid")),
		"lost, then access is": toolstest.Settled{Want: toolstest.Review, Effects: 1, Class: fault.Tool,
			Code: "provider_failed"}.After(change, kind(fakegoogle.ResetAfter)).
			After(get, fakegoogle.Fault{}, status(401, "authError")),
	}
	maps.Copy(all, more)
	return all
}

func TestReconcileRepeatedAction(t *testing.T) {
	w := newEnv(t, scope)
	c := w.Call
	if out, err := w.Tool.Reconcile(t.Context(), c); err != nil || out.Verdict != tool.NotDone {
		t.Errorf("before: %+v, %v; want not_done", out, err)
	}
	first, err := w.Tool.Execute(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	again, err := w.Tool.Execute(t.Context(), c) // 409, and the event is the action's own (PR-011)
	if err != nil || string(again) != string(first) || len(w.Events()) != 1 {
		t.Errorf("again = %s, %v with %d events; want %s and 1", again, err, len(w.Events()), first)
	}
}

func TestReconcileDeletedEvent(t *testing.T) {
	w := newEnv(t, scope)
	c := w.Call
	if _, err := w.Tool.Execute(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	if err := w.owner.Events.Delete("primary", w.Events()[0]["id"].(string)).Do(); err != nil {
		t.Fatal(err)
	}
	out, err := w.Tool.Reconcile(t.Context(), c)
	if err != nil || out.Verdict != tool.Done || !strings.Contains(string(out.Result), `"cancelled":true`) {
		t.Errorf("Reconcile = %+v, %v; want done and cancelled", out, err)
	}
	if res, err := w.Tool.Execute(t.Context(), c); err != nil || !strings.Contains(string(res), `"cancelled":true`) ||
		len(w.Events()) != 1 {
		t.Errorf("Execute = %s, %v with %d events; want the cancelled one (PR-013)", res, err, len(w.Events()))
	}
}

func TestReconcileForeignEvent(t *testing.T) {
	w := newEnv(t, scope)
	c := w.Call
	if _, err := w.Tool.Execute(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	ev := &calendarapi.Event{ExtendedProperties: &calendarapi.EventExtendedProperties{
		Private: map[string]string{"countersignAction": "other"}}}
	if _, err := w.owner.Events.Patch("primary", w.Events()[0]["id"].(string), ev).Do(); err != nil {
		t.Fatal(err)
	}
	got, _, err := w.CarryOut(t)
	if got != toolstest.Review || len(w.Events()) != 1 {
		t.Errorf("%s, %v with %d events; want needs_review", got, err, len(w.Events()))
	}
}

func TestReconcileReadOnlyScope(t *testing.T) {
	w := newEnv(t, "https://www.googleapis.com/auth/calendar.readonly")
	if _, err := w.Tool.Execute(t.Context(), w.Call); !fault.Is(err, fault.Auth, fault.CodeScope) {
		t.Errorf("Execute = %v; want scope_missing", err)
	}
}

func TestCreateAsApproved(t *testing.T) {
	w := newEnv(t, scope)
	change := rule("RRULE:FREQ=WEEKLY;COUNT=3")
	change["attendees"], change["location"], change["description"], change["sendUpdates"] = []string{"a@example.com"},
		"Room 1", "Agenda\nall", "externalOnly"
	args, err := w.Tool.Normalize(with(change))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Tool.Execute(t.Context(),
		tool.Call{UID: toolstest.GoogleUser, ActionID: "a", Args: args}); err != nil {
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
