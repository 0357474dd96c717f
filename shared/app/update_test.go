package app_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/tools/calendar"
	"github.com/countersign-run/countersign/shared/tools/gmail"
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

// TestUpdateEvent changes an event after the card, which becomes out of date once.
func TestUpdateEvent(t *testing.T) {
	w := deploy(t, "AGENTS="+daysAgent(t, calendar.Update))
	w.has("ana", "Lunch")
	event := func() map[string]any { return w.Google.Events()[0] }
	w.SetModel(testkit.Wants(calendar.Update, map[string]any{"eventId": event()["id"], "start": "2027-01-05T15:00:00Z",
		"addAttendees": []string{"bob@example.com"}, "before": map[string]any{"etag": "mine", "event": map[string]any{
			"summary": "Forged", "start": "", "end": ""}}}))
	r := w.askOf("days")
	holds(t, "the card", string(w.call("GET", "/api/agent/approvals/pending", "").Body),
		`{"label":"Event","value":"Lunch"}`, "Tuesday, 5 January 2027, 12:00", "Tuesday, 5 January 2027, 15:00",
		`{"label":"Newly invited","value":"bob@example.com"}`, "Google e-mails the change to everyone invited")
	if err := w.Google.ChangeEvent(testkit.Address("ana"), event()["id"].(string),
		map[string]any{"summary": "Dinner"}); err != nil {
		t.Fatal(err)
	}
	if r = w.approve(r); event()["told"] != "none" || r.Status != "awaiting_confirmation" {
		t.Fatalf("%v after %s", event(), r.Body)
	}
	holds(t, "the new card", string(w.call("GET", "/api/agent/approvals/pending", "").Body),
		`{"label":"Event","value":"Dinner"}`, "has changed since you were shown it (title)",
		"This has changed since you were asked: title. It was “Lunch”, and it is now “Dinner”.")
	r = w.approve(r)
	if start := event()["start"].(map[string]any)["dateTime"]; r.HTTP != http.StatusOK || r.Status != "completed" ||
		start != "2027-01-05T15:00:00Z" || event()["told"] != "all" || event()["summary"] != "Dinner" {
		t.Errorf("%v after %s", event(), r.Body)
	}
	if !strings.Contains(string(r.Body), "Changed the event “Dinner”.") {
		t.Errorf("the run says %s", r.Body)
	}
}

// TestBusyTimesScope checks that the scope is requested when a user first needs it, and not before.
func TestBusyTimesScope(t *testing.T) {
	const busy = "https://www.googleapis.com/auth/calendar.events.freebusy"
	w := newLinked(t, "AGENTS="+daysAgent(t, calendar.FreeBusy))
	w.has(home, "CANARY")
	if got := string(w.call("POST", "/api/agent/connections/google", `{}`).Body); strings.Contains(got, "freebusy") {
		t.Errorf("linking an account asks for %s", got)
	}
	w.SetModel(testkit.Wants(calendar.FreeBusy, day))
	if r := w.askOf("days"); len(r.Actions) != 1 || r.Actions[0].ErrorReason != "scope_missing" {
		t.Errorf("without the scope: %s", r.Body)
	}
	if got := string(w.call("POST", "/api/agent/connections/google", `{"tools":["calendar_freebusy"]}`).Body); !strings.
		Contains(got, "freebusy") || strings.Contains(got, "gmail") {
		t.Errorf("who needs it is asked for %s", got)
	}
	w.SetScopes(home, append(slices.Clone(testkit.Scopes), busy)...)
	w.link(home)
	var read string
	w.SetModel(func(r fakegemini.Request) fakegemini.Turn {
		for _, f := range r.Responses() {
			read = string(f.Response)
		}
		return testkit.Wants(calendar.FreeBusy, day)(r)
	})
	if r := w.askOf("days"); r.Status != "completed" || strings.Contains(read, "CANARY") {
		t.Errorf("%s after %s", r.Body, read)
	}
	holds(t, "the answer", read, `"person":"you"`, `"start":"2027-01-05T13:00:00+01:00"`)
}

// TestInvitationAnswered accepts an invitation of someone else.
func TestInvitationAnswered(t *testing.T) {
	w := deploy(t, "AGENTS="+daysAgent(t, calendar.Respond))
	if err := w.Google.AddEvent(testkit.Address("ana"), map[string]any{"summary": "Review",
		"organizer": map[string]any{"email": "boss@example.com"}, "start": map[string]any{"date": "2027-01-05"},
		"end":       map[string]any{"date": "2027-01-06"},
		"attendees": []any{map[string]any{"email": testkit.Address("ana")}}}); err != nil {
		t.Fatal(err)
	}
	w.SetModel(testkit.Wants(calendar.Respond, map[string]any{"eventId": w.Google.Events()[0]["id"],
		"answer": "accepted", "comment": "Gladly."}))
	r := w.askOf("days")
	holds(t, "the card", string(w.call("GET", "/api/agent/approvals/pending", "").Body), "Accept an invitation",
		`{"label":"Event","value":"Review"}`, "boss@example.com", `{"label":"Your answer becomes","value":"Accepted"}`)
	if r = w.approve(r); r.Status != "completed" ||
		!strings.Contains(string(r.Body), "Answered the invitation “Review”: accepted.") {
		t.Errorf("%s; want r.Status “completed”, r.Body with “Answered the invitation “Review”: accepted.”", r.Body)
	}
	me := w.Google.Events()[0]["attendees"].([]any)[0].(map[string]any)
	if me["responseStatus"] != "accepted" || me["comment"] != "Gladly." || w.Google.Events()[0]["told"] != "all" {
		t.Errorf("the event is %v", w.Google.Events()[0])
	}
}

// TestDraftReply leaves an answer to an e-mail among the drafts, derived as a reply is.
func TestDraftReply(t *testing.T) {
	w, id := answering(t, asked, "AGENTS="+daysAgent(t, gmail.LeaveDraft))
	w.SetModel(testkit.Wants(gmail.LeaveDraft, map[string]any{"to": []string{"eve@example.com"}, "subject": "x",
		"body": "Noon is fine.", "replyTo": map[string]any{"messageId": id}}))
	r := w.askOf("days")
	holds(t, "the card", string(w.call("GET", "/api/agent/approvals/pending", "").Body),
		"Save a draft of an e-mail to one person", `{"label":"To","value":"ben@example.com"}`)
	if r = w.approve(r); r.Status != "completed" ||
		!strings.Contains(string(r.Body), "Saved a draft of “Re: Lunch plan”.") {
		t.Errorf("%s; want r.Status “completed”, r.Body with “Saved a draft of “Re: Lunch plan”.”", r.Body)
	}
	drafts := w.Google.Drafts(testkit.Address("ana"))
	if len(drafts) != 1 || len(w.Google.Messages()) != 0 {
		t.Fatalf("there are %d drafts, and %d e-mails were sent", len(drafts), len(w.Google.Messages()))
	}
	holds(t, "the draft", string(drafts[0]), "To: ben@example.com", "In-Reply-To: <2@example.com>", "Noon is fine.",
		"Is noon fine?")
}

// TestDraftInDirectMode checks that an operator who chose the smaller right is asked for no other.
func TestDraftInDirectMode(t *testing.T) {
	w := newLinked(t, "GMAIL_SEND_MODE=direct")
	if got := string(w.call("POST", "/api/agent/connections/google", `{}`).Body); strings.Contains(got, "compose") {
		t.Errorf("linking an account asks for %s", got)
	}
}

// TestLabelsChanged archives an e-mail, with the scope that only an operator's setting asks for.
func TestLabelsChanged(t *testing.T) {
	w := newLinked(t, "GMAIL_MODIFY=on", "AGENTS="+daysAgent(t, gmail.Modify))
	w.files(home)
	id := w.Google.Newest(testkit.Address(home))
	w.SetModel(testkit.Wants(gmail.Modify, map[string]any{"messageIds": []string{id}, "addLabels": []string{"invoices"},
		"removeLabels": []string{"INBOX"}, "filing": map[string]any{"mails": []any{}, "account": map[string]any{
			"id": "x", "name": "x"}}}))
	if r := w.askOf("days"); r.Actions[0].ErrorReason != "scope_missing" {
		t.Fatalf("%s; want r.Actions[0].ErrorReason “scope_missing”", r.Body)
	}
	w.SetScopes(home, append(slices.Clone(testkit.Scopes), mayModify)...)
	w.link(home)
	r := w.askOf("days")
	holds(t, "the card", string(w.call("GET", "/api/agent/approvals/pending", "").Body),
		"Change the labels of one e-mail", `Add the label “Invoices”\nArchive (remove from the inbox)`,
		"“Your invoice”, from eve@example.com, ")
	if r = w.approve(r); r.Status != "completed" ||
		!strings.Contains(string(r.Body), "Changed the labels of one e-mail.") {
		t.Errorf("%s; want r.Status “completed”, r.Body with “Changed the labels of one e-mail.”", r.Body)
	}
	if got := w.Google.Labels(testkit.Address(home), id); slices.Contains(got, "INBOX") || len(got) != 2 {
		t.Errorf("the mail has %q", got)
	}
}

// TestLabelsOffByDefault checks that the setting adds the tool and its scope.
func TestLabelsOffByDefault(t *testing.T) {
	w := newLinked(t)
	a := w.call("POST", "/api/agent/connections/google", `{"tools":["gmail_modify"]}`)
	if a.HTTP == http.StatusOK || strings.Contains(string(a.Body), "gmail.modify") {
		t.Errorf("%s", a.Body)
	}
}
