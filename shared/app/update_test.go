package app_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/tools/calendar"
)

// daysAgent returns a folder with the agent days, which has the tools.
func daysAgent(t *testing.T, tools string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "days.agent.yaml"),
		[]byte("name: days\ninstruction: You plan days.\ntools: ["+tools+"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestAnEventIsChangedAsItsCardShows changes an event after the card, which becomes out of date once.
func TestAnEventIsChangedAsItsCardShows(t *testing.T) {
	w := deploy(t, "AGENTS="+daysAgent(t, calendar.Update))
	w.has("ana", "Lunch")
	event := func() map[string]any { return w.Google.Events()[0] }
	w.SetModel(testkit.Wants(calendar.Update, map[string]any{"eventId": event()["id"], "start": "2027-01-05T15:00:00Z",
		"addAttendees": []string{"bob@example.com"}, "before": map[string]any{"etag": "mine", "event": map[string]any{
			"summary": "Forged", "start": "", "end": ""}}}))
	r := w.askOf("days")
	holds(t, "the card", string(w.call("GET", "/api/agent/approvals/pending", "").Body),
		`{"label":"Event","value":"Lunch"}`, "Tuesday, 5 January 2027, 12:00", "Tuesday, 5 January 2027, 15:00",
		`{"label":"Newly invited","value":"bob@example.com"}`, "Google mails the change to everyone invited")
	if err := w.Google.ChangeEvent(testkit.Address("ana"), event()["id"].(string),
		map[string]any{"summary": "Dinner"}); err != nil {
		t.Fatal(err)
	}
	if r = w.approve(r); event()["told"] != "none" || r.Status != "awaiting_confirmation" {
		t.Fatalf("%v after %s", event(), r.Body)
	}
	holds(t, "the new card", string(w.call("GET", "/api/agent/approvals/pending", "").Body),
		`{"label":"Event","value":"Dinner"}`, "has changed since you were shown it (title)")
	r = w.approve(r)
	if start := event()["start"].(map[string]any)["dateTime"]; r.HTTP != http.StatusOK || r.Status != "completed" ||
		start != "2027-01-05T15:00:00Z" || event()["told"] != "all" || event()["summary"] != "Dinner" {
		t.Errorf("%v after %s", event(), r.Body)
	}
	if !strings.Contains(string(r.Body), "Changed the event “Dinner”.") {
		t.Errorf("the run says %s", r.Body)
	}
}
