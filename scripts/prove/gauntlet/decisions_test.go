package gauntlet

import (
	"encoding/json"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/scripts/prove/gauntlet/trial"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/testkit/fields"
)

// ask starts a run of the first user, which must be accepted.
func (w *proved) ask(prompt, thread string) testkit.Answer {
	w.t.Helper()
	body := trial.Object("prompt", prompt)
	if thread != "" {
		body = trial.Object("prompt", prompt, "threadId", thread)
	}
	return w.call("POST", "/run", body)
}

// call sends a request of the first user. The response must be 200.
func (w *proved) call(method, path, body string) testkit.Answer {
	w.t.Helper()
	a := w.try(method, path, body)
	if a.HTTP != http.StatusOK {
		w.t.Fatalf("%s %s: %d %s; want a.HTTP %v", method, path, a.HTTP, a.Body, http.StatusOK)
	}
	return a
}

// try sends a request and accepts any response.
func (w *proved) try(method, path, body string) testkit.Answer {
	w.t.Helper()
	a, err := w.Call(w.t.Context(), trial.First, method, "/api/agent"+path, body)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// decide resolves an approval, and accepts any response.
func (w *proved) decide(a testkit.Approval, decision string) testkit.Answer {
	w.t.Helper()
	return w.try("POST", "/approvals/resolve",
		trial.Object("approvalId", a.ApprovalID, "decision", decision, "argsHash", a.ArgsHash))
}

// approve approves every pending approval of a response.
func (w *proved) approve(r testkit.Answer) {
	w.t.Helper()
	if len(r.Approvals) == 0 {
		w.t.Fatalf("no pending approval: %s", r.Body)
	}
	for _, a := range r.Approvals {
		if got := w.decide(a, "approve_once"); got.HTTP != http.StatusOK {
			w.t.Fatalf("%d %s; want got.HTTP %v", got.HTTP, got.Body, http.StatusOK)
		}
	}
}

// deliver pushes messages until the queue has none due.
func (w *proved) deliver() {
	w.t.Helper()
	for {
		n, err := w.Deliver(w.t.Context())
		if err != nil {
			w.t.Fatal(err)
		}
		if n == 0 {
			return
		}
	}
}

// restart stops Countersign and starts it again on the same store, with other settings.
func (w *proved) restart(o testkit.Options) {
	w.t.Helper()
	if err := w.Stop(); err != nil {
		w.t.Fatal(err)
	}
	if err := w.Start(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

func (w *proved) wantMails(n int) {
	w.t.Helper()
	if got := w.Google.Messages(); len(got) != n {
		w.t.Errorf("%d e-mails were sent, want %d: %+v", len(got), n, got)
	}
}

func (w *proved) wantRun(id, status, reason string) testkit.Answer {
	w.t.Helper()
	r := w.call("GET", "/runs/"+id, "")
	if r.Status != status || r.ErrorReason != reason {
		w.t.Errorf("the run is %s %s, want %s %s: %s", r.Status, r.ErrorReason, status, reason, r.Body)
	}
	return r
}

func (w *proved) decode(a testkit.Answer, into any) {
	w.t.Helper()
	if err := json.Unmarshal(a.Body, into); err != nil {
		w.t.Fatal(err)
	}
}

// TestOldApprovalAfterRestartAndDeploy is case 3.
func TestOldApprovalAfterRestartAndDeploy(t *testing.T) {
	dir := t.TempDir()
	w := deploy(t, testkit.Options{Dir: dir, Settings: []string{"RELEASE=one"}})
	w.SetModel(testkit.Wants("gmail_send", testkit.Mail(trial.Recipient, "s", "b")))
	r := w.ask("send it", "")
	w.approve(r)
	w.deliver()
	w.wantRun(r.RunID, "completed", "")
	for _, release := range []string{"one", "two"} {
		w.restart(testkit.Options{Dir: dir, Settings: []string{"RELEASE=" + release}})
		if got := w.decide(r.Approvals[0], "approve_once"); got.HTTP != http.StatusOK || got.Status != "completed" {
			t.Errorf("release %s: %d %s", release, got.HTTP, got.Body)
		}
		w.deliver()
		w.wantMails(1)
	}
}

// TestDeliveriesTwiceLateAndOutOfOrder is case 4.
func TestDeliveriesTwiceLateAndOutOfOrder(t *testing.T) {
	w := deploy(t, testkit.Options{})
	w.SetModel(testkit.Wants("gmail_send", testkit.Mail(trial.Recipient, "s", "b")))
	r := w.ask("send it", "")
	push := func() error {
		return w.Push(w.Base)(t.Context(), queue.Envelope(queue.Message{RunID: r.RunID}, "m", 1, time.Now()))
	}
	if err := push(); err != nil { // before the user has decided
		t.Fatal(err)
	}
	w.wantMails(0)
	w.approve(r)
	var racing sync.WaitGroup
	for range 8 {
		racing.Go(func() { _ = push() }) // the second delivery is refused for now
	}
	racing.Wait()
	for range 2 { // late
		if err := push(); err != nil {
			t.Fatal(err)
		}
	}
	w.deliver() // the message that the decision published
	w.wantRun(r.RunID, "completed", "")
	w.wantMails(1)
	if n := len(w.Gemini.Requests()); n != 2 {
		t.Errorf("the model was called %d times, want the prompt and one continuation", n)
	}
}

// TestEditsDeniedByPolicy is case 7b.
func TestEditsDeniedByPolicy(t *testing.T) {
	w := deploy(t, testkit.Options{Settings: []string{"POLICY_DENIED=evil.org"}})
	w.SetModel(testkit.Wants("gmail_send", testkit.Mail(trial.Recipient, "s", "b")))
	r := w.ask("send it", "")
	card := r.Approvals[0]
	got := w.try("POST", "/approvals/resolve", trial.Object("approvalId", card.ApprovalID, "decision",
		"approve_with_edits", "editedArgs", testkit.Mail("eve@evil.org", "s", "b")))
	if got.HTTP != http.StatusForbidden || got.Error.Class != "PolicyError" || got.Error.Code != "denied" {
		t.Errorf("%d %s; want got.HTTP %v, got.Error.Class “PolicyError”, got.Error.Code “denied”",
			got.HTTP, got.Body, http.StatusForbidden)
	}
	w.deliver()
	w.wantMails(0)
	if r = w.wantRun(r.RunID, "awaiting_confirmation", ""); len(r.Approvals) != 1 ||
		r.Approvals[0].ArgsHash != card.ArgsHash {
		t.Errorf("pending approvals: %+v", r.Approvals)
	}
}

// TestRevokedBetweenProposalAndExecution is case 21. The allowlist entry is removed while the draft is created.
func TestRevokedBetweenProposalAndExecution(t *testing.T) {
	w := deploy(t, testkit.Options{})
	w.SetModel(testkit.Wants("gmail_send", testkit.Mail(trial.Recipient, "s", "b")))
	r := w.ask("send it", "")
	if got := w.decide(r.Approvals[0], "approve_and_always_allow_recipient"); got.HTTP != http.StatusOK {
		t.Fatalf("%d %s; want got.HTTP %v", got.HTTP, got.Body, http.StatusOK)
	}
	w.deliver()
	w.wantMails(1)
	revoke := sync.OnceFunc(func() {
		var list struct{ Entries []struct{ ID string } }
		w.decode(w.call("GET", "/allowlist", ""), &list)
		if len(list.Entries) != 1 {
			t.Errorf("the allowlist holds %+v", list.Entries)
			return
		}
		w.call("DELETE", "/allowlist/"+list.Entries[0].ID, "")
	})
	w.SetFault(func(op string) fakegoogle.Fault {
		if op == "gmail.drafts.create" {
			revoke()
		}
		return fakegoogle.Fault{}
	})
	r = w.ask("send it again", "")
	if r.Status != "awaiting_confirmation" || len(r.Approvals) != 1 {
		t.Errorf("no approval is requested: %s", r.Body)
	}
	w.wantMails(1)
	w.approve(r)
	w.deliver()
	w.wantMails(2)
}

// TestKillSwitchWithPendingApprovals is case 25. One approval is pending. Another was given, but its run has not
// advanced yet.
func TestKillSwitchWithPendingApprovals(t *testing.T) {
	dir := t.TempDir()
	w := deploy(t, testkit.Options{Dir: dir})
	w.SetModel(testkit.Wants("gmail_send", testkit.Mail(trial.Recipient, "s", "b")))
	waiting, given := w.ask("send it", ""), w.ask("send it", "")
	w.approve(given)
	w.restart(testkit.Options{Dir: dir, Settings: []string{"SIDE_EFFECTS=off"}})
	w.deliver()
	done := w.wantRun(given.RunID, "completed", "")
	fields.Check(t, done.Actions[0],
		testkit.Action{Status: "failed", ErrorReason: "denied", ExecutionStatus: "not_started"})
	for _, decision := range []string{"approve_once", "approve_and_always_allow_recipient"} {
		if got := w.decide(waiting.Approvals[0], decision); got.HTTP != http.StatusForbidden ||
			got.Error.Code != "denied" {
			t.Errorf("%s: %d %s; want got.HTTP %v, got.Error.Code “denied”",
				decision, got.HTTP, got.Body, http.StatusForbidden)
		}
	}
	w.deliver()
	w.wantMails(0)
	w.restart(testkit.Options{Dir: dir})
	pending := w.call("GET", "/approvals/pending", "").Approvals
	if !slices.EqualFunc(pending, waiting.Approvals,
		func(a, b testkit.Approval) bool { return a.ApprovalID == b.ApprovalID && a.ArgsHash == b.ArgsHash }) {
		t.Errorf("pending approvals: %+v", pending)
	}
	w.approve(waiting)
	w.deliver()
	w.wantMails(1)
}
