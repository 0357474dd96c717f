package app_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/receipts/receipt"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/tools/calendar"
)

// made is an approved and created event.
type made struct {
	linked
	runID, actionID, threadID string
}

// newMade makes ana create an event with a guest in her home account.
func newMade(w linked) made {
	w.t.Helper()
	e := testkit.Event("Lunch", time.Now().AddDate(0, 1, 0))
	e["attendees"] = []string{"bob@example.org"}
	w.SetModel(testkit.Wants(calendar.Name, e))
	asked := w.ask()
	w.approve(asked)
	w.deliver()
	return made{w, asked.RunID, asked.Actions[0].ActionID, asked.ThreadID}
}

// takeBack requests to undo the event.
func (m made) takeBack() testkit.Answer {
	m.t.Helper()
	return m.call("POST", "/api/agent/runs/"+m.runID+"/compensate", `{"actionId":"`+m.actionID+`"}`)
}

// compensation returns the compensation in the event's record.
func (m made) compensation() run.Compensation { return m.compensationAt("") }

// compensationAt returns the compensation in the record that the query reads.
func (m made) compensationAt(query string) run.Compensation {
	m.t.Helper()
	r := m.records(m.runID + query)
	if len(r) != 1 || r[0] == nil || r[0].Compensation == nil {
		m.t.Fatalf("nothing is offered: %+v", r)
	}
	return *r[0].Compensation
}

// event returns the event from the calendar.
func (m made) event() map[string]any { return m.Google.Events()[0] }

// TestCompensateEvent checks on both stores that undoing is offered, needs approval, happens once, and is not offered
// again.
func TestCompensateEvent(t *testing.T) {
	onBothStores(t, func(t *testing.T, w linked) {
		m := newMade(w)
		if c := m.compensation(); c != (run.Compensation{Title: "Delete the event", Status: run.Offered}) {
			t.Errorf("what was made is offered as %+v", c)
		}
		a := m.takeBack()
		if a.HTTP != http.StatusOK || a.Status != "awaiting_confirmation" || a.ThreadID != m.threadID ||
			a.RunID == m.runID {
			t.Fatalf("%d %s", a.HTTP, a.Body)
		}
		c := m.card()
		var shown struct {
			Approvals []struct{ Decisions []string }
		}
		if err := json.Unmarshal(a.Body, &shown); err != nil || len(shown.Approvals) != 1 ||
			!slices.Equal(shown.Approvals[0].Decisions, []string{"approve_once", "reject"}) {
			t.Errorf("it may be decided otherwise than as it is shown: %s", a.Body)
		}
		words := fmt.Sprint(c.preview)
		for _, want := range []string{"Delete a calendar event with 1 guest", "Lunch", "bob@example.org",
			"Google e-mails everyone", testkit.Address(home)} {
			if !strings.Contains(words, want) {
				t.Errorf("the card lacks %q: %s", want, words)
			}
		}
		if got := m.compensation(); got.Status != run.Begun || got.RunID != a.RunID {
			t.Errorf("while it waits: %+v", got)
		}
		if again := m.takeBack(); again.RunID != a.RunID || m.event()["status"] != "confirmed" {
			t.Errorf("asked again: %d %s", again.HTTP, again.Body)
		}
		w.wants("the yes", m.decide(c, "approve_once"), http.StatusOK, "")
		m.deliver()
		done := m.run(a.RunID)
		if m.event()["status"] != "cancelled" || m.event()["told"] != "all" || done.Status != "completed" ||
			!strings.Contains(done.Summary, "Deleted the event “Lunch”") {
			t.Errorf("%v, %s; want m.event()[\"status\"] “cancelled”, m.event()[\"told\"] “all”, "+
				"done.Status “completed”, done.Summary with “Deleted the event “Lunch””",
				m.event(), done.Body)
		}
		if got := m.compensation(); got.Status != run.TakenBack || got.RunID != a.RunID || got.At.IsZero() {
			t.Errorf("when it is done: %+v", got)
		}
		if again := m.takeBack(); again.HTTP != http.StatusOK || again.RunID != a.RunID || again.Status != "completed" {
			t.Errorf("asked when it is done: %d %s", again.HTTP, again.Body)
		}
		m.onRecord(a.RunID)
	})
}

// TestCompensateMissingEvent deletes the event in the calendar. The record says so, and nothing is offered or asked.
func TestCompensateMissingEvent(t *testing.T) {
	m := newMade(newLinked(t))
	id, _ := m.event()["id"].(string)
	checked := func() run.Compensation { return m.compensationAt("?check=true") }
	if got := checked(); got.Status != run.Offered {
		t.Errorf("while it is there: %+v", got)
	}
	m.link(work) // this account has no such event
	if got := checked(); got.Status != run.Offered {
		t.Errorf("another account does not know it: %+v", got)
	}
	m.link(home)
	if err := m.Google.ChangeEvent(testkit.Address(home), id, map[string]any{"status": "cancelled"}); err != nil {
		t.Fatal(err)
	}
	if got := checked(); got.Status != run.Gone || got.Title != "Already deleted in your calendar" {
		t.Errorf("when it is gone: %+v", got)
	}
	if got := m.compensation(); got.Status != run.Offered {
		t.Errorf("nobody has asked: %+v", got)
	}
	if a := m.takeBack(); a.HTTP != http.StatusConflict || !strings.Contains(string(a.Body), "Already deleted") {
		t.Errorf("to delete it: %d %s", a.HTTP, a.Body)
	}
	if a := m.call("GET", "/api/agent/runs/"+m.runID+"?check=x", ""); a.HTTP != http.StatusBadRequest {
		t.Errorf("another value: %d %s", a.HTTP, a.Body)
	}
}

// onRecord checks the audit and the receipt of the run that undid the event.
func (m made) onRecord(runID string) {
	m.t.Helper()
	m.verifies(runID)
	var page struct {
		Entries []struct {
			Kind, Tool, Decision string
			Facts                map[string]string
		}
	}
	a := m.call("GET", "/api/agent/audit?runId="+runID, "")
	if err := json.Unmarshal(a.Body, &page); err != nil {
		m.t.Fatal(err)
	}
	kinds := map[string]bool{}
	for _, e := range page.Entries {
		if e.Tool == calendar.Delete {
			kinds[e.Kind] = e.Facts["compensates"] == m.actionID
		}
	}
	for _, kind := range []string{"requested", "decided", "intent", "outcome"} {
		if !kinds[kind] {
			m.t.Errorf("the audit lacks %s of what is taken back: %s", kind, a.Body)
		}
	}
	file := m.call("GET", "/api/agent/runs/"+runID+"/receipt", "").Body
	if got, why := receipt.Verify(file, m.keys()); got != receipt.True || !strings.Contains(string(file), "Lunch") {
		m.t.Errorf("the receipt: %s %s %s", got, why, file)
	}
}

func TestCompensateFromSeveralTabs(t *testing.T) {
	onBothStores(t, func(t *testing.T, w linked) {
		m := newMade(w)
		var all sync.WaitGroup
		ids := make([]string, 4)
		for i := range ids {
			all.Go(func() {
				a, err := m.Call(t.Context(), "ana", "POST", "/api/agent/runs/"+m.runID+"/compensate",
					`{"actionId":"`+m.actionID+`"}`)
				if err != nil || a.HTTP != http.StatusOK {
					t.Errorf("%v %d %s; want a.HTTP %v", err, a.HTTP, a.Body, http.StatusOK)
				}
				ids[i] = a.RunID
			})
		}
		all.Wait()
		slices.Sort(ids)
		if len(slices.Compact(ids)) != 1 {
			t.Errorf("several runs are begun: %v", ids)
		}
		w.wants("the yes", m.decide(m.card(), "approve_once"), http.StatusOK, "")
		m.deliver()
		if m.event()["status"] != "cancelled" {
			t.Errorf("%v; want m.event()[\"status\"] “cancelled”", m.event())
		}
	})
}

func TestCompensateRefused(t *testing.T) {
	w := newLinked(t)
	m := newMade(w)
	body := `{"actionId":"` + m.actionID + `"}`
	other, err := w.Call(t.Context(), "eve", "POST", "/api/agent/runs/"+m.runID+"/compensate", body)
	gone := w.call("POST", "/api/agent/runs/"+strings.Repeat("a", 26)+"/compensate", body)
	if err != nil || other.HTTP != http.StatusNotFound || gone.HTTP != http.StatusNotFound ||
		other.Error.Message != gone.Error.Message {
		t.Errorf("another user's: %v %d %s; of no run: %d %s", err, other.HTTP, other.Body, gone.HTTP, gone.Body)
	}
	w.wants("no action", w.call("POST", "/api/agent/runs/"+m.runID+"/compensate", `{}`), http.StatusBadRequest, "invalid")
	w.wants("another action", w.call("POST", "/api/agent/runs/"+m.runID+"/compensate",
		`{"actionId":"`+strings.Repeat("b", 26)+`"}`), http.StatusNotFound, "not_found")
	w.mail()
	asked := w.ask()
	mail := made{w, asked.RunID, asked.Actions[0].ActionID, ""}
	w.wants("a mail that waits", mail.takeBack(), http.StatusConflict, "not_applicable")
	w.approve(asked)
	w.deliver()
	w.wants("a mail", mail.takeBack(), http.StatusConflict, "not_applicable")
	if r := w.records(asked.RunID)[0]; r.Compensation != nil {
		t.Errorf("a mail is offered to be taken back: %+v", r.Compensation)
	}
	w.link(work)
	w.wants("from another account", m.takeBack(), http.StatusConflict, "stale_view")
	if n := len(w.call("GET", "/api/agent/approvals/pending", "").Approvals); n != 0 {
		t.Errorf("%d approvals wait", n)
	}
	w.link(home)
	w.wants("from the account again", m.takeBack(), http.StatusOK, "")
}

// TestCompensateAsShown checks that an undo can neither be edited nor always allowed, and that it is offered again
// after a rejection.
func TestCompensateAsShown(t *testing.T) {
	w := newLinked(t)
	m := newMade(w)
	first := m.takeBack()
	c := m.card()
	w.wants("an edit", w.edit(c.Approval, c.Args), http.StatusConflict, "not_applicable")
	w.wants("always", m.decide(c, "approve_and_always_allow_recipient"), http.StatusConflict, "not_applicable")
	w.wants("no", m.decide(c, "reject"), http.StatusOK, "")
	w.deliver()
	if got := m.compensation(); got.Status != run.Offered || m.event()["status"] != "confirmed" {
		t.Errorf("after the no: %+v, %v", got, m.event())
	}
	second := m.takeBack()
	if second.HTTP != http.StatusOK || second.RunID == first.RunID || second.Status != "awaiting_confirmation" {
		t.Fatalf("asked anew: %d %s", second.HTTP, second.Body)
	}
	w.link(work)
	w.wants("a yes after another account is linked", m.decide(m.card(), "approve_once"), http.StatusConflict,
		"stale_view")
	w.link(home)
	w.wants("a yes", m.decide(m.card(), "approve_once"), http.StatusConflict, "stale_view") // it was requested again
	w.wants("the yes", m.decide(m.card(), "approve_once"), http.StatusOK, "")
	w.deliver()
	if m.event()["status"] != "cancelled" {
		t.Errorf("%v; want m.event()[\"status\"] “cancelled”", m.event())
	}
}

func TestCompensateChangedEvent(t *testing.T) {
	w := newLinked(t)
	m := newMade(w)
	id, _ := m.event()["id"].(string)
	a := m.takeBack()
	if err := w.Google.ChangeEvent(testkit.Address(home), id, map[string]any{"summary": "Dinner"}); err != nil {
		t.Fatal(err)
	}
	w.wants("the yes", m.decide(m.card(), "approve_once"), http.StatusOK, "")
	w.deliver()
	c := m.card()
	if m.event()["status"] != "confirmed" ||
		!strings.Contains(fmt.Sprint(c.preview), "asked: title. It was “Lunch”, and it is now “Dinner”.") ||
		!strings.Contains(c.Reason, "has changed since you were shown it (title)") || c.RunID != a.RunID {
		t.Fatalf("%v; the card: %s: %v", m.event(), c.Reason, c.preview)
	}
	w.wants("the other yes", m.decide(c, "approve_once"), http.StatusOK, "")
	w.deliver()
	if done := m.run(a.RunID); m.event()["status"] != "cancelled" ||
		!strings.Contains(done.Summary, "Deleted the event “Dinner”") {
		t.Errorf("%v, %s; want m.event()[\"status\"] “cancelled”, done.Summary with “Deleted the event “Dinner””",
			m.event(), done.Body)
	}
	m.verifies(a.RunID)
	if got := m.compensation(); got.Status != run.TakenBack {
		t.Errorf("%+v; want got.Status %v", got, run.TakenBack)
	}
}
