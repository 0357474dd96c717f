package gauntlet

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/scripts/prove/gauntlet/trial"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// batch is a model that requests five e-mails in one turn: one is always allowed, three need approval, and one is
// denied.
func batch(r fakegemini.Request) fakegemini.Turn {
	if len(r.Responses()) > 0 {
		return fakegemini.Turn{Text: "That is what came of it."}
	}
	var calls []fakegemini.Call
	for _, to := range []string{"bob@x.org", "always@x.org", "dan@x.org", "eve@evil.org", "fay@x.org"} {
		calls = append(calls, fakegemini.Call{Name: "gmail_send", Args: testkit.Mail(to, "s", "b")})
	}
	return fakegemini.Turn{Calls: calls}
}

// TestBatchInEveryOrder is case 10. The fake Gemini checks that the signature is intact.
func TestBatchInEveryOrder(t *testing.T) {
	w := deploy(t, testkit.Options{Settings: []string{"POLICY_DENIED=evil.org"}})
	w.SetModel(testkit.Wants("gmail_send", testkit.Mail("always@x.org", "s", "b")))
	if got := w.decide(w.ask("send it", "").Approvals[0],
		"approve_and_always_allow_recipient"); got.HTTP != http.StatusOK {
		t.Fatalf("%d %s; want got.HTTP %v", got.HTTP, got.Body, http.StatusOK)
	}
	w.deliver()
	w.SetModel(batch)
	for _, order := range [][3]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
		t.Run(fmt.Sprint(order), func(t *testing.T) {
			asked, sent := len(w.Gemini.Requests()), len(w.Google.Messages())
			r := w.ask("send them all", "")
			if len(r.Approvals) != 3 || len(w.Google.Messages()) != sent+1 {
				t.Fatalf("%d approvals, %d e-mails: %s", len(r.Approvals), len(w.Google.Messages())-sent, r.Body)
			}
			for _, i := range order {
				if got := w.decide(r.Approvals[i], "approve_once"); got.HTTP != http.StatusOK {
					t.Fatalf("%d %s; want got.HTTP %v", got.HTTP, got.Body, http.StatusOK)
				}
				w.deliver()
			}
			w.wantRun(r.RunID, "completed", "")
			w.wantMails(sent + 4)
			if n := len(w.Gemini.Requests()) - asked; n != 2 {
				t.Errorf("the model was called %d times", n)
			}
			checkResponses(t, w.Gemini.Requests()[asked+1])
		})
	}
}

// checkResponses compares the responses with the calls before them.
func checkResponses(t *testing.T, r fakegemini.Request) {
	t.Helper()
	var calls, answers []string
	for _, p := range r.Contents[len(r.Contents)-2].Parts {
		if p.FunctionCall != nil {
			calls = append(calls, p.FunctionCall.ID)
		}
	}
	for i, f := range r.Responses() {
		answers = append(answers, f.ID)
		if denied := strings.Contains(string(f.Response), `"error"`); denied != (i == 3) {
			t.Errorf("response %d is %s", i, f.Response)
		}
	}
	if len(calls) != 5 || !slices.Equal(calls, answers) {
		t.Errorf("calls %q, responses %q", calls, answers)
	}
}

// TestHistoryCutDuringWait is case 12. The user writes until everything from before the call is cut from the
// model's input, and then approves the call.
func TestHistoryCutDuringWait(t *testing.T) {
	w := deploy(t, testkit.Options{})
	w.SetModel(testkit.Says("Hello."))
	thread := w.ask("word 0", "").ThreadID
	w.SetModel(testkit.Wants("gmail_send", testkit.Mail(trial.Recipient, "s", "b")))
	waiting := w.ask("send it", thread)
	long := strings.Repeat("Words of the model. ", 200)
	w.SetModel(func(fakegemini.Request) fakegemini.Turn { return fakegemini.Turn{Text: long, Pieces: 1} })
	for n := 1; n <= 25; n++ {
		if r := w.ask(fmt.Sprintf("word %d", n), thread); r.Status != "completed" {
			t.Fatalf("%s; want r.Status “completed”", r.Body)
		}
	}
	for _, r := range w.Gemini.Requests()[2:] {
		for _, c := range r.Contents {
			if slices.ContainsFunc(c.Parts,
				func(p fakegemini.Part) bool { return p.FunctionCall != nil || p.FunctionResponse != nil }) {
				t.Fatalf("the open call is in another run's request: %s", r.Raw)
			}
		}
	}
	for _, c := range w.Gemini.Requests()[2].Contents { // the first request after the approval was requested
		for _, p := range c.Parts {
			if p.Text != nil && strings.Contains(*p.Text, "Waiting for your approval") &&
				(c.Role != "user" || !strings.HasPrefix(*p.Text, "[record ")) {
				t.Errorf("the approval request is in the model's input as a text of the %s: %s", c.Role, *p.Text)
			}
		}
	}
	last := w.Gemini.Requests()[26]
	if raw := fmt.Sprintf("%s", last.Raw); last.User() != "word 25" || strings.Contains(raw, "send it") ||
		strings.Contains(raw, `"word 10"`) || !strings.Contains(raw, `"word 24"`) {
		t.Errorf("nothing or too much was cut: %s", raw)
	}
	w.approve(waiting)
	w.deliver()
	w.wantRun(waiting.RunID, "completed", "")
	w.wantMails(1)
	continued := w.Gemini.Requests()[27]
	n := len(continued.Contents)
	parts := continued.Contents[max(n-3, 0)].Parts
	if n < 3 || *parts[len(parts)-1].Text != "send it" || len(continued.Responses()) != 1 {
		t.Errorf("the run continues with %s", continued.Raw)
	}
}
