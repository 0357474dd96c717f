package api_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/script"
)

// askedIn starts a run that requests an e-mail to bob, in the thread or in a new one, and returns its approval.
func (w *env) askedIn(thread, text string) (approvalID, threadID string, of answer) {
	w.t.Helper()
	w.asks(text)
	body, _ := json.Marshal(map[string]string{"prompt": "tell bob " + text, "threadId": thread})
	if thread == "" {
		body = []byte(`{"prompt":"tell bob"}`)
	}
	a := w.send("POST", "/api/agent/run", "ana", string(body))
	if id := a.at("approvals", "0", "approvalId"); id != "" {
		return id, a.at("threadId"), a
	}
	w.t.Fatalf("%s: %s", a.Status, a.body)
	return "", "", a
}

// approveInstead approves a card and rejects the earlier cards.
func (w *env) approveInstead(id, more string, earlier ...string) answer {
	ids, _ := json.Marshal(earlier)
	return w.send("POST", "/api/agent/approvals/resolve", "ana",
		fmt.Sprintf(`{"approvalId":%q,"decision":"approve_once","rejects":%s%s}`, id, ids, more))
}

// waiting returns the IDs of ana's waiting approvals.
func (w *env) waiting() string {
	var ids []string
	for _, a := range w.send("GET", "/api/agent/approvals/pending", "ana", "").items("approvals") {
		ids = append(ids, fmt.Sprint(a.(map[string]any)["approvalId"]))
	}
	return strings.Join(ids, " ")
}

func (w *env) decideOn(id, decision string) answer {
	return w.send("POST", "/api/agent/approvals/resolve", "ana",
		fmt.Sprintf(`{"approvalId":%q,"decision":%q}`, id, decision))
}

// TestCorrection approves the second of two corrections, which also rejects both earlier cards.
func TestCorrection(t *testing.T) {
	w := newEnv(t)
	first, thread, a := w.askedIn("", "ten")
	if strings.Contains(string(a.body), "insteadOf") {
		t.Errorf("the first card replaces something: %s", a.body)
	}
	second, _, a := w.askedIn(thread, "eleven")
	if got := a.at("approvals", "0", "insteadOf", "0", "approvalId"); got != first {
		t.Errorf("the second card names %q, not %s", got, first)
	}
	third, _, a := w.askedIn(thread, "twelve")
	if got := a.at("approvals", "0", "insteadOf", "0", "approvalId") +
		a.at("approvals", "0", "insteadOf", "1", "approvalId"); got != second+first {
		t.Errorf("the third card names %q", got)
	}
	for range 2 { // repeated, as if the first answer was lost
		if a := w.approveInstead(third, "", second, first); a.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s; want a.StatusCode %v", a.Status, a.body, http.StatusOK)
		}
		if got := w.waiting(); got != "" {
			t.Errorf("still waiting: %s", got)
		}
	}
	w.model.Then(script.Turn{Text: "Done."})
	w.push()
	if got := strings.Join(w.sent, "; "); got != "bob@x.org: twelve" {
		t.Errorf("sent: %s", got)
	}
	runID := strings.Split(first, "-")[0]
	a = w.send("GET", "/api/agent/runs/"+runID, "ana", "")
	if a.at("status") != "completed" || a.at("actions", "0", "status") != "rejected" ||
		a.at("actions", "0", "replacedBy") != third {
		t.Errorf("the first: %s", a.body)
	}
	audit := w.send("GET", "/api/agent/audit?runId="+runID, "ana", "")
	if !strings.Contains(string(audit.body), `"replacedBy":"`+third+`"`) {
		t.Errorf("its audit: %s", audit.body)
	}
	if a := w.decideOn(first, "approve_once"); a.StatusCode != http.StatusConflict {
		t.Errorf("a late yes to the first: %s", a.Status)
	}
}

// TestCorrectionAfterDecision decides the earlier card before the newer one.
func TestCorrectionAfterDecision(t *testing.T) {
	for name, c := range map[string]struct {
		before, more string
		status       int
		says         string
	}{
		"approved":     {before: "approve_once", status: http.StatusConflict, says: "The earlier card was approved at"},
		"held":         {before: `approve_once","holdSeconds":60,"comment":"`, status: http.StatusConflict, says: "Undo that first"},
		"edited":       {before: `approve_with_edits","editedArgs":{"to":["bob@x.org"],"text":"nine"},"comment":"`, status: http.StatusConflict, says: "approved at"},
		"rejected":     {before: "reject", status: http.StatusOK, says: `"decision":"approve_once"`},
		"another hash": {more: `,"argsHash":"x"`, status: http.StatusConflict, says: "changed since you saw it"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			first, thread, _ := w.askedIn("", "ten")
			second, _, _ := w.askedIn(thread, "eleven")
			if c.before != "" {
				body := fmt.Sprintf(`{"approvalId":%q,"decision":"%s"}`, first, c.before)
				if a := w.send("POST", "/api/agent/approvals/resolve", "ana", body); a.StatusCode != http.StatusOK {
					t.Fatalf("%s: %s; want a.StatusCode %v", a.Status, a.body, http.StatusOK)
				}
			}
			open := w.waiting()
			a := w.approveInstead(second, c.more, first)
			if a.StatusCode != c.status || !strings.Contains(string(a.body), c.says) {
				t.Errorf("%s: %s; want a.StatusCode %v, a.body with %q", a.Status, a.body, c.status, c.says)
			}
			if c.status != http.StatusOK && w.waiting() != open {
				t.Errorf("it waits no longer: %s", w.waiting())
			}
		})
	}
}

// TestUndoneCorrection undoes the approval of a correction, twice as if the first answer was lost. The earlier call
// waits again, once and with its arguments, and is approved.
func TestUndoneCorrection(t *testing.T) {
	w := newEnv(t)
	first, thread, _ := w.askedIn("", "ten")
	rejected, _, _ := w.askedIn(thread, "half past ten")
	w.decideOn(rejected, "reject")
	second, _, _ := w.askedIn(thread, "eleven")
	if a := w.approveInstead(second, `,"holdSeconds":60`, first); a.StatusCode != http.StatusOK || w.waiting() != "" {
		t.Fatalf("%s: %s; want a.StatusCode %v, w.waiting() empty", a.Status, a.body, http.StatusOK)
	}
	for range 2 {
		a := w.decideOn(second, "undo")
		if a.StatusCode != http.StatusOK || a.at("actions", "0", "status") != "rejected" {
			t.Fatalf("%s: %s; want a.StatusCode %v, a.at(\"actions\", \"0\", \"status\") “rejected”",
				a.Status, a.body, http.StatusOK)
		}
	}
	pending := w.send("GET", "/api/agent/approvals/pending", "ana", "")
	if n := len(pending.items("approvals")); n != 1 || pending.at("approvals", "0", "args", "text") != "ten" ||
		pending.at("approvals", "0", "threadId") != thread ||
		!strings.HasPrefix(pending.at("approvals", "0", "reason"), "You undid the approval of the newer card") {
		t.Fatalf("%d wait: %s", n, pending.body)
	}
	w.push()
	if a := w.decideOn(w.waiting(), "approve_once"); a.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s; want a.StatusCode %v", a.Status, a.body, http.StatusOK)
	}
	w.push()
	if got := strings.Join(w.sent, "; "); got != "bob@x.org: ten" {
		t.Errorf("sent: %s", got)
	}
}

// TestCorrectionOfForeignCard checks that an approval cannot reject cards that its own card does not name.
func TestCorrectionOfForeignCard(t *testing.T) {
	w := newEnv(t)
	other, _, _ := w.askedIn("", "ten")
	first, thread, _ := w.askedIn("", "ten")
	second, _, _ := w.askedIn(thread, "eleven")
	for name, a := range map[string]answer{
		"a card of another conversation": w.approveInstead(second, "", first, other),
		"the card itself":                w.approveInstead(second, "", second),
		"too many":                       w.approveInstead(second, "", first, first, first, first, first),
		"an older card":                  w.approveInstead(first, "", second),
		"an undo": w.send("POST", "/api/agent/approvals/resolve", "ana",
			fmt.Sprintf(`{"approvalId":%q,"decision":"undo","rejects":[%q]}`, second, first)),
		"a rejection": w.send("POST", "/api/agent/approvals/resolve", "ana",
			fmt.Sprintf(`{"approvalId":%q,"decision":"reject","rejects":[%q]}`, second, first)),
	} {
		if a.StatusCode != http.StatusBadRequest || a.at("error", "field") != "rejects" {
			t.Errorf("%s: %s %s; want a.StatusCode %v, a.at(\"error\", \"field\") “rejects”",
				name, a.Status, a.body, http.StatusBadRequest)
		}
	}
	a := w.send("POST", "/api/agent/approvals/resolve", "bea",
		fmt.Sprintf(`{"approvalId":%q,"decision":"approve_once","rejects":[%q]}`, second, first))
	if a.StatusCode != http.StatusNotFound {
		t.Errorf("another user: %s", a.Status)
	}
	if got := w.waiting(); got != second+" "+first+" "+other {
		t.Errorf("waiting: %s", got)
	}
}

// TestRepeatedDecisionWithMore repeats a decision with something that the first did not say. The answer is a conflict,
// because the addition has no effect. The exact repetition gets the first outcome.
func TestRepeatedDecisionWithMore(t *testing.T) {
	w := newEnv(t)
	first, thread, _ := w.askedIn("", "ten")
	second, _, _ := w.askedIn(thread, "eleven")
	third, _, _ := w.askedIn("", "noon")
	says := func(id, decision, more, want string) {
		t.Helper()
		a := w.send("POST", "/api/agent/approvals/resolve", "ana",
			fmt.Sprintf(`{"approvalId":%q,"decision":%q%s}`, id, decision, more))
		if got := a.at("error", "message"); (want == "") != (a.StatusCode == http.StatusOK) ||
			!strings.Contains(got, want) {
			t.Errorf("%s%s: %s %s; want %q", decision, more, a.Status, a.body, want)
		}
	}
	says(second, "approve_once", "", "")
	says(second, "approve_once", "", "")
	says(second, "approve_once", fmt.Sprintf(`,"rejects":[%q]`, first), "did not reject the earlier card")
	if got := w.waiting(); !strings.Contains(got, first) {
		t.Errorf("waiting: %s", got)
	}
	says(first, "reject", "", "")
	says(second, "approve_once", fmt.Sprintf(`,"rejects":[%q]`, first), "") // there is nothing left to reject
	says(second, "approve_once", `,"comment":"But not to Eve"`, "with other words")
	says(third, "reject", `,"comment":"Too early"`, "")
	says(third, "reject", `,"comment":"Too early"`, "")
	says(third, "reject", "", "")
	says(third, "reject", `,"comment":"Too late, ask Eve"`, "with other words")
	long := strings.Repeat("é", 1000)
	fourth, _, _ := w.askedIn("", "one")
	says(fourth, "reject", fmt.Sprintf(`,"comment":%q`, long), "")
	says(fourth, "reject", fmt.Sprintf(`,"comment":%q`, long), "")
}
