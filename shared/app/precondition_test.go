package app_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegithub"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/tools/calendar"
	"github.com/countersign-run/countersign/shared/tools/github"
)

// lunch is an event at a time of its own day.
var lunch = map[string]any{"summary": "Lunch", "start": "2027-01-05T13:30:00", "end": "2027-01-05T14:30:00",
	"timeZone": "Europe/Berlin"}

// cardOf returns the run, and the only card that it waits with.
func (w *proved) cardOf(uid, runID string) (testkit.Answer, string) {
	w.t.Helper()
	a, err := w.Call(w.t.Context(), uid, "GET", "/api/agent/runs/"+runID, "")
	if err != nil || len(a.Approvals) != 1 {
		w.t.Fatalf("%v: %s; want one card", err, a.Body)
	}
	cards, err := w.Call(w.t.Context(), uid, "GET", "/api/agent/approvals/pending", "")
	if err != nil {
		w.t.Fatal(err)
	}
	return a, string(cards.Body)
}

// TestPreconditionSlotTaken lets the time of an event be taken between its card and the yes, twice. The user is asked
// again each time, and the event is created once the time is as the card says. Another user's calendar changes nothing.
func TestPreconditionSlotTaken(t *testing.T) {
	onEachStore(t, func(t *testing.T, settings ...string) {
		w := deploy(t, settings...)
		w.SetModel(testkit.Wants(calendar.Name, lunch))
		r := w.ask()
		if _, card := w.cardOf("ana", r.RunID); strings.Contains(card, "calendar at that time") {
			t.Errorf("the first card names a free time: %s", card)
		}
		w.has("ben", "Standup")
		w.has("ana", "Dentist")
		created := len(w.Google.Events())

		again, card := w.cardOf("ana", w.approve(r).RunID)
		holds(t, "the second card", card, `“Dentist” then: 13:00–14:00 (Europe/Berlin)`,
			`This has changed since you were asked: Your calendar at that time. It was “free”, and it is now `+
				`“taken 13:00–14:00 (Europe/Berlin)”.`)
		if got := len(w.Google.Events()); got != created || again.Approvals[0].ApprovalID == r.Approvals[0].ApprovalID {
			t.Errorf("%d events with the card %v; want %d, and a new card", got, again.Approvals, created)
		}
		if err := w.Google.ChangeEvent(testkit.Address("ana"), eventNamed(t, w, "Dentist"), map[string]any{
			"end": map[string]any{"dateTime": "2027-01-05T13:15:00Z"}}); err != nil {
			t.Fatal(err)
		}
		third, card := w.cardOf("ana", w.approve(again).RunID)
		holds(t, "the third card", card, `It was “taken 13:00–14:00 (Europe/Berlin)”, and it is now `+
			`“taken 13:00–14:15 (Europe/Berlin)”.`)
		if done := w.approve(third); done.Status != "completed" || len(w.Google.Events()) != created+1 {
			t.Errorf("%s, with %d events; want completed, and %d", done.Body, len(w.Google.Events()), created+1)
		}
		log := w.call("GET", "/api/agent/audit?runId="+r.RunID, "")
		holds(t, "the audit", string(log.Body), "precondition_changed")
		if strings.Contains(string(log.Body)+w.Logs.String(), "Dentist") {
			t.Errorf("the audit or the log names another event of the calendar")
		}
	})
}

func eventNamed(t *testing.T, w *proved, title string) string {
	t.Helper()
	for _, e := range w.Google.Events() {
		if e["summary"] == title {
			return e["id"].(string)
		}
	}
	t.Fatalf("no event %q", title)
	return ""
}

// TestPreconditionBecameFine frees the time of an event between its card and the yes. No new yes is needed.
func TestPreconditionBecameFine(t *testing.T) {
	w := deploy(t)
	w.has("ana", "Dentist")
	w.SetModel(testkit.Wants(calendar.Name, lunch))
	r := w.ask()
	_, card := w.cardOf("ana", r.RunID)
	holds(t, "the card", card, `"value":"taken 13:00–14:00 (Europe/Berlin)"`)
	if err := w.Google.ChangeEvent(testkit.Address("ana"), eventNamed(t, w, "Dentist"),
		map[string]any{"transparency": "transparent"}); err != nil {
		t.Fatal(err)
	}
	if done := w.approve(r); done.Status != "completed" {
		t.Errorf("%s; want completed", done.Body)
	}
}

// TestPreconditionUnreadable approves an event while the calendar cannot be read. The user is asked again, with a card
// that says so, and that yes counts.
func TestPreconditionUnreadable(t *testing.T) {
	w := deploy(t)
	w.SetModel(testkit.Wants(calendar.Name, lunch))
	r := w.ask()
	w.counted("calendar.events.list")
	again, card := w.cardOf("ana", w.approve(r).RunID)
	holds(t, "the second card", card, "could not be read, so it is not checked before this is done")
	if n := len(w.Google.Events()); n != 0 {
		t.Errorf("%d events; want none", n)
	}
	if done := w.approve(again); done.Status != "completed" || len(w.Google.Events()) != 1 {
		t.Errorf("%s, with %d events; want completed, and 1", done.Body, len(w.Google.Events()))
	}
}

// TestPreconditionReadAgain checks that a calendar that fails for a moment before the intent does not ask again.
func TestPreconditionReadAgain(t *testing.T) {
	w := deploy(t)
	w.SetModel(testkit.Wants(calendar.Name, lunch))
	r := w.ask()
	failed := 0
	w.SetFault(func(op string) fakegoogle.Fault {
		if op != "calendar.events.list" || failed > 0 {
			return fakegoogle.Fault{}
		}
		failed++
		return fakegoogle.Fault{Kind: fakegoogle.StatusBefore, Status: http.StatusServiceUnavailable,
			Reason: "backendError"}
	})
	if done := w.approve(r); done.Status != "completed" || failed != 1 {
		t.Errorf("%s after %d failures; want completed after 1", done.Body, failed)
	}
}

// onIssue returns a deployment in which acme/web has one open issue, and a task that makes one call about it.
func onIssue(t *testing.T, grants []any, tool string, args map[string]any) (*proved, *steps) {
	t.Helper()
	w := deploy(t)
	w.GitHub.Add(fakegithub.Seed{Owner: "acme", Name: "web", Writers: []string{"ana"},
		Files:  map[string]string{"README.md": "A site."},
		Issues: []fakegithub.SeedIssue{{Author: "ana", Title: "Broken"}}})
	w.linkGitHub("ana", "ana")
	args["owner"], args["repo"], args["issueNumber"] = "acme", "web", 1
	return w, &steps{grants: grants, tools: []string{tool},
		calls: []func(string) (string, map[string]any){func(string) (string, map[string]any) { return tool, args }}}
}

// editIssue changes the issue on GitHub.
func (w *proved) editIssue(change string) {
	w.t.Helper()
	at, err := w.App.API.GitHub.Place(w.t.Context(), "ana", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	client, err := w.App.API.GitHub.Client(w.t.Context(), "ana", at)
	if err != nil {
		w.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodPatch,
		strings.TrimSuffix(w.App.Config.GitHubAPIURL, "/")+"/repos/acme/web/issues/1", strings.NewReader(change))
	if err != nil {
		w.t.Fatal(err)
	}
	res, err := client.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		w.t.Fatalf("%s; want 200", res.Status)
	}
}

// TestPreconditionIssueClosed closes the issue that a comment is for, after its card. The comment is written once the
// user has seen that.
func TestPreconditionIssueClosed(t *testing.T) {
	w, s := onIssue(t, nil, github.CreateComment, map[string]any{"body": "I will look at it."})
	r, card := w.cardOf("ana", w.carriedOut(s).SessionID)
	holds(t, "the first card", card, `"label":"State now","value":"open"`)
	w.editIssue(`{"state":"closed"}`)
	again, card := w.cardOf("ana", w.approve(r).RunID)
	holds(t, "the second card", card, `State now. It was “open”, and it is now “closed”.`)
	if n := w.GitHub.Effects("issues/create-comment"); n != 0 {
		t.Errorf("%d comments; want none", n)
	}
	if w.approve(again); w.GitHub.Effects("issues/create-comment") != 1 {
		t.Errorf("%d comments; want 1", w.GitHub.Effects("issues/create-comment"))
	}
}

// TestPreconditionOfGrant changes an issue between a call that a plan's grant covers and its intent. The user is asked.
func TestPreconditionOfGrant(t *testing.T) {
	w, s := onIssue(t, []any{map[string]any{"tool": github.UpdateIssue, "maxCalls": 1, "target": map[string]any{
		"owner": "acme", "repo": "web", "issueNumber": 1, "updates": map[string]any{}}}},
		github.UpdateIssue, map[string]any{"updates": map[string]any{"title": "Mended"}})
	reads := 0
	w.SetFault(func(op string) fakegoogle.Fault {
		if op != "issues/get" {
			return fakegoogle.Fault{}
		}
		if reads++; reads == 2 {
			w.editIssue(`{"title":"Really broken"}`)
		}
		return fakegoogle.Fault{}
	})
	got := w.carriedOut(s)
	_, card := w.cardOf("ana", got.SessionID)
	holds(t, "the card", card, "Title now. It was “Broken”, and it is now “Really broken”.")
	if title := w.GitHub.View()[0].Issues[0].Title; title != "Really broken" {
		t.Errorf("the title is %q; want that of the other person", title)
	}
}

// TestPreconditionSigned changes what a yes rests on in the store, after the yes. The call does not run.
func TestPreconditionSigned(t *testing.T) {
	w := deploy(t)
	w.SetModel(testkit.Wants(calendar.Name, lunch))
	r := w.ask()
	w.has("ana", "Dentist")
	got, err := w.Resolve(t.Context(), "ana", r.Approvals[0], "approve_once")
	if err != nil || got.HTTP != http.StatusOK {
		t.Fatalf("%v %d %s; want got.HTTP %v", err, got.HTTP, got.Body, http.StatusOK)
	}
	if !w.rewrite(document.RunPath(r.RunID), func(e *run.Event) {
		if e.Proposed != nil {
			e.Proposed.RestsOn[0].Value = "taken 13:00–14:00 (Europe/Berlin)"
		}
	}) {
		t.Fatal("nothing was changed")
	}
	w.deliver()
	done := w.call("GET", "/api/agent/runs/"+r.RunID, "")
	if !strings.Contains(string(done.Body), "forged_decision") || len(w.Google.Events()) != 1 {
		t.Errorf("%s, with %d events; want forged_decision, and 1", done.Body, len(w.Google.Events()))
	}
}

// TestPreconditionLaterEmail receives another e-mail of the conversation between the card of an answer and the yes. The
// answer is sent once its user has seen that.
func TestPreconditionLaterEmail(t *testing.T) {
	w, id := answering(t, asked)
	r, card := w.proposes(map[string]any{"replyTo": map[string]any{"messageId": id}, "body": "Noon is fine."})
	if strings.Contains(card, "of the conversation") {
		t.Errorf("the first card names the newest e-mail: %s", card)
	}
	later := strings.NewReplacer("<2@", "<3@", "<1@example.com>", "<2@example.com>", "Is noon fine?", "Or one?").
		Replace(asked)
	if err := w.Google.Receive(testkit.Address("ana"), []byte(later)); err != nil {
		t.Fatal(err)
	}
	again, card := w.cardOf("ana", w.approve(r).RunID)
	holds(t, "the second card", card, "The conversation has a later e-mail", "It was “the one that this answers”",
		"a later one ("+w.Google.Newest(testkit.Address("ana"))+")")
	if n := len(w.Google.Messages()); n != 0 {
		t.Errorf("%d e-mails were sent; want none", n)
	}
	holds(t, "the e-mail", w.sends(again), "In-Reply-To: <2@example.com>", "Noon is fine.")
}
