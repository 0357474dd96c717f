package app_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/tools/calendar"
)

// counted counts the operations of the local Google. The named one fails.
func (w *proved) counted(failing string) map[string]int {
	calls := map[string]int{}
	w.SetFault(func(op string) fakegoogle.Fault {
		if calls[op]++; op == failing {
			return fakegoogle.Fault{Kind: fakegoogle.StatusBefore, Status: http.StatusForbidden, Reason: "forbidden"}
		}
		return fakegoogle.Fault{}
	})
	return calls
}

// TestCardConflictWarning proposes an event, and then moves it, to a time that is taken. The card's facts cost one
// request, and one more before the event is created. Another title of the other event changes nothing.
func TestCardConflictWarning(t *testing.T) {
	w := deploy(t, "AGENTS="+daysAgent(t, calendar.Name+", "+calendar.Update))
	w.has("ana", "Standup\u202e")
	calls := w.counted("")
	w.SetModel(testkit.Wants(calendar.Name, map[string]any{"summary": "Lunch", "start": "2027-01-05T13:30:00",
		"end": "2027-01-05T14:30:00", "timeZone": "Europe/Berlin"}))
	r := w.askOf("days")
	const warning = `You have “Standup⟨U+202E⟩” then: 13:00–14:00 (Europe/Berlin).`
	holds(t, "the card", string(w.call("GET", "/api/agent/approvals/pending", "").Body), warning)
	if calls["calendar.events.list"] != 1 || len(calls) != 1 {
		t.Errorf("the proposal took %v", calls)
	}
	if err := w.Google.ChangeEvent(testkit.Address("ana"), w.Google.Events()[0]["id"].(string),
		map[string]any{"summary": "Retro"}); err != nil {
		t.Fatal(err)
	}
	if r = w.approve(r); r.Status != "completed" || len(w.Google.Events()) != 2 || calls["calendar.events.list"] != 2 {
		t.Fatalf("%s after %v", r.Body, calls)
	}

	id := w.Google.Events()[1]["id"]
	move := func(to string) string {
		w.SetModel(testkit.Wants(calendar.Update, map[string]any{"eventId": id, "start": to}))
		r = w.askOf("days")
		return string(w.call("GET", "/api/agent/approvals/pending", "").Body)
	}
	holds(t, "the card of the move", move("2027-01-05T12:30:00+01:00"),
		`You have “Retro” then: 13:00–14:00 (Europe/Berlin).`)
	w.approve(r)
	if got := move("2027-01-05T12:00:00+01:00"); strings.Contains(got, "You have") {
		t.Errorf("a free time, or the event itself, is in the way: %s", got)
	}
}

// TestCardConflictUnreadableCalendar checks that a proposal does without the warning.
func TestCardConflictUnreadableCalendar(t *testing.T) {
	w := deploy(t)
	w.has("ana", "Standup")
	calls := w.counted("calendar.events.list")
	w.event()
	r := w.ask()
	if got := string(w.call("GET", "/api/agent/approvals/pending", "").Body); strings.Contains(got, "You have") {
		t.Errorf("the card says %s", got)
	}
	if r = w.approve(r); r.Status != "completed" || calls["calendar.events.list"] != 1 {
		t.Errorf("%s after %v", r.Body, calls)
	}
}
