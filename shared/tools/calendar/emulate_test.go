package calendar_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	calendarapi "google.golang.org/api/calendar/v3"
	"google.golang.org/api/option"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/testkit/emulate"
	"github.com/countersign-run/countersign/shared/tool"
	"github.com/countersign-run/countersign/shared/tools/calendar"
)

// owner is the one linked account of the emulator.
type owner struct{ client *http.Client }

func (owner) Place(context.Context, string, []string) (tool.Place, error) { return tool.Place{}, nil }

func (o owner) Client(context.Context, string, tool.Place) (*http.Client, error) {
	return o.client, nil
}

// emulated returns the tool with a third-party emulator and the scopes, and a client of the calendar's owner.
func emulated(t *testing.T, e *emulate.Emulator, scopes ...string) *world {
	t.Helper()
	c, endpoint := e.Client(t, scopes...), e.URL+"/calendar/v3/"
	w := &world{tool: calendar.New(owner{c},
		calendar.Options{Endpoint: endpoint, Timeout: 10 * time.Second, Now: func() time.Time { return today }})}
	var err error
	if w.owner, err = calendarapi.NewService(t.Context(), option.WithHTTPClient(e.Client(t, calendarapi.CalendarScope)),
		option.WithEndpoint(endpoint)); err != nil {
		t.Fatal(err)
	}
	return w
}

// titled returns a call that creates an event of this title.
func titled(t *testing.T, w *world, title string) tool.Call {
	t.Helper()
	args, err := w.tool.Normalize(
		with(map[string]any{"summary": title, "attendees": []string{"a@example.com"}, "location": "Room 1"}))
	if err != nil {
		t.Fatal(err)
	}
	return tool.Call{UID: "u", ActionID: "action of " + title, Args: args}
}

// made returns the events of the title, as the emulator lists them.
func made(t *testing.T, w *world, title string) (found []*calendarapi.Event) {
	t.Helper()
	list, err := w.owner.Events.List("primary").MaxResults(2500).Do()
	if err != nil {
		t.Fatal(err)
	}
	for _, ev := range list.Items {
		if ev.Summary == title {
			found = append(found, ev)
		}
	}
	return found
}

func TestAnotherCalendarTakesWhatWasApproved(t *testing.T) {
	w := emulated(t, emulate.Start(t), scope)
	c := titled(t, w, "Breakfast")
	out, err := w.tool.Execute(t.Context(), c)
	if err != nil || !strings.Contains(string(out), `"eventId":"`) {
		t.Fatalf("Execute = %s, %v", out, err)
	}
	got := made(t, w, "Breakfast")
	if len(got) != 1 {
		t.Fatalf("%d events", len(got))
	}
	ev := got[0]
	if ev.Start.DateTime != "2027-01-05T10:00:00Z" || ev.End.DateTime != "2027-01-05T11:00:00Z" ||
		ev.Location != "Room 1" || len(ev.Attendees) != 1 || ev.Attendees[0].Email != "a@example.com" {
		t.Errorf("the event is %+v from %+v to %+v with %+v", ev, ev.Start, ev.End, ev.Attendees)
	}
	if again, err := w.tool.Execute(t.Context(), c); err != nil || string(again) != string(out) ||
		len(made(t, w, "Breakfast")) != 1 {
		t.Errorf("again = %s, %v with %d events; want %s and 1", again, err, len(made(t, w, "Breakfast")), out)
	}
}

// TestAnotherCalendarsFaultsAreSettled implements reliability §2, the table "How C18-C20 are settled", column
// "Calendar".
func TestAnotherCalendarsFaultsAreSettled(t *testing.T) {
	const insert, get, readonly = "calendar.events.insert", "calendar.events.get", calendarapi.CalendarReadonlyScope
	e := emulate.Start(t)
	for name, c := range map[string]struct {
		scope  string
		op     string
		faults []emulate.Fault
		want   string
		events int
		class  fault.Class
		code   fault.Code
	}{
		"401":               {scope, insert, []emulate.Fault{{Status: 401}}, "failed", 0, fault.Auth, fault.CodeReauth},
		"scope not granted": {readonly, "", nil, "failed", 0, fault.Auth, fault.CodeScope},
		"400": {scope, insert, []emulate.Fault{{Status: 400, Reason: "invalid"}}, "failed", 0, fault.Tool,
			"provider_refused"},
		"429 before": {scope, insert, []emulate.Fault{{Status: 429, Reason: "rateLimitExceeded"}}, "completed",
			1, "", ""},
		"503 before": {scope, insert, []emulate.Fault{{Status: 503}}, "completed", 1, "", ""},
		"cut before": {scope, insert, []emulate.Fault{{}}, "completed", 1, "", ""},
		"500 after":  {scope, insert, []emulate.Fault{{Status: 500, After: true}}, "completed", 1, "", ""},
		"cut after":  {scope, insert, []emulate.Fault{{After: true}}, "completed", 1, "", ""},
		"409 after": {scope, insert, []emulate.Fault{{Status: 409, Reason: "duplicate", After: true}},
			"completed", 1, "", ""},
		"down": {scope, insert, []emulate.Fault{{Status: 503}, {Status: 503}, {Status: 503}}, "failed", 0,
			fault.Tool, "provider_failed"},
	} {
		t.Run(name, func(t *testing.T) {
			w := emulated(t, e, c.scope)
			e.Break(c.op, c.faults...)
			got, out, err := w.carryOut(t, titled(t, w, name))
			if got != c.want || c.code != "" && !fault.Is(err, c.class, c.code) {
				t.Errorf("it ended as %s: %v; want %s %s %s", got, err, c.want, c.class, c.code)
			}
			if n := len(made(t, w, name)); n != c.events {
				t.Errorf("%d events; want %d", n, c.events)
			}
			if c.want == "completed" && !strings.Contains(string(out), `"eventId":"`) {
				t.Errorf("the answer is %s", out)
			}
		})
	}
	t.Run("lost, then the look fails", func(t *testing.T) {
		w := emulated(t, e, scope)
		e.Break(insert, emulate.Fault{After: true})
		e.Break(get, emulate.Fault{Status: 503})
		if got, _, err := w.carryOut(t, titled(t, w, "lost")); got != "completed" || len(made(t, w, "lost")) != 1 {
			t.Errorf("it ended as %s with %d events: %v", got, len(made(t, w, "lost")), err)
		}
	})
}

func TestAnotherCalendarsDeletedEventIsNotMadeAgain(t *testing.T) {
	w := emulated(t, emulate.Start(t), scope)
	c := titled(t, w, "Breakfast")
	if out, err := w.tool.Reconcile(t.Context(), c); err != nil || out.Verdict != tool.NotDone {
		t.Errorf("before: %+v, %v; want not_done", out, err)
	}
	out, err := w.tool.Execute(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	id := strings.SplitN(strings.SplitN(string(out), `"eventId":"`, 2)[1], `"`, 2)[0]
	if err := w.owner.Events.Delete("primary", id).Do(); err != nil {
		t.Fatal(err)
	}
	settled, err := w.tool.Reconcile(t.Context(), c)
	if err != nil || settled.Verdict != tool.Done || !strings.Contains(string(settled.Result), `"cancelled":true`) {
		t.Errorf("Reconcile = %+v, %v; want done and cancelled", settled, err)
	}
	if got := made(t, w, "Breakfast"); len(got) != 0 {
		t.Errorf("%d events after the deletion", len(got))
	}
}
