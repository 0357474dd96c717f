package app_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/testkit"
)

// records returns the actions' records in GET /runs/{id}.
func (w *proved) records(runID string) []*run.ActionRecord {
	w.t.Helper()
	a := w.call("GET", "/api/agent/runs/"+runID, "")
	var got struct {
		Actions []struct{ Record *run.ActionRecord }
	}
	if err := json.Unmarshal(a.Body, &got); err != nil || a.HTTP != http.StatusOK {
		w.t.Fatalf("%d %v %s; want a.HTTP %v", a.HTTP, err, a.Body, http.StatusOK)
	}
	var all []*run.ActionRecord
	for _, act := range got.Actions {
		all = append(all, act.Record)
	}
	return all
}

// TestRecordOfEditedMail checks that after an edit, the record has the edited e-mail and the one before.
func TestRecordOfEditedMail(t *testing.T) {
	w := newLinked(t)
	w.SetModel(testkit.Wants("gmail_send", testkit.Mail("bob@example.com", "old subject", "old words")))
	asked := w.ask()
	if r := w.records(asked.RunID)[0]; r == nil || r.RequestedAt.IsZero() || !r.DecidedAt.IsZero() || r.Result != nil {
		t.Errorf("while it waits: %+v", r)
	}
	w.wants("the edit", w.edit(asked.Approvals[0], testkit.Mail("carl@example.com", "new subject", "new words")),
		http.StatusOK, "")
	w.deliver()
	a, r := w.call("GET", "/api/agent/runs/"+asked.RunID, ""), w.records(asked.RunID)[0]
	sent := w.Google.Messages()
	if len(sent) != 1 || r == nil {
		t.Fatalf("%d e-mails, %s", len(sent), a.Body)
	}
	if !strings.Contains(string(r.Args), "new words") || !strings.Contains(string(r.Proposed), "old words") ||
		strings.Contains(string(r.Args), "old") {
		t.Errorf("args %s, proposed %s", r.Args, r.Proposed)
	}
	shown, err := json.Marshal(r.Preview)
	if err != nil || !strings.Contains(string(shown), "carl@example.com") ||
		!strings.Contains(string(shown), "new words") || strings.Contains(string(shown), "bob@") {
		t.Errorf("preview %s %v", shown, err)
	}
	if r.DecidedBy != "ana" || r.DecidedAt.Before(r.RequestedAt) || r.StartedAt.Before(r.DecidedAt) ||
		r.FinishedAt.Before(r.StartedAt) || r.RequestedAt.IsZero() {
		t.Errorf("decided by %q, times %v %v %v %v", r.DecidedBy, r.RequestedAt, r.DecidedAt, r.StartedAt, r.FinishedAt)
	}
	var result struct{ MessageID string }
	if err := json.Unmarshal(r.Result, &result); err != nil || result.MessageID != sent[0].ID ||
		!strings.HasSuffix(r.Link, "#all/"+sent[0].ID) || r.Place == nil ||
		r.Preview.Fields[0].Value != r.Place.Name {
		t.Errorf("result %s, link %s, place %v, sent %s", r.Result, r.Link, r.Place, sent[0].ID)
	}
	if !strings.Contains(a.Summary, "carl@example.com") || strings.Contains(a.Summary, "bob@") {
		t.Errorf("the thread tells what was first asked for: %s", a.Summary)
	}
}

// TestRecordOfRejectionComment checks that only the run's owner gets the comment.
func TestRecordOfRejectionComment(t *testing.T) {
	w := newLinked(t)
	w.mail()
	asked := w.ask()
	w.wants("the rejection", w.call("POST", "/api/agent/approvals/resolve", `{"approvalId":"`+
		asked.Approvals[0].ApprovalID+`","decision":"reject","comment":"not to Bob"}`), http.StatusOK, "")
	r := w.records(asked.RunID)[0]
	if r == nil || r.Comment != "not to Bob" || r.DecidedBy != "ana" || r.Result != nil || r.Link != "" ||
		!r.StartedAt.IsZero() {
		t.Errorf("%+v", r)
	}
	other, err := w.Call(t.Context(), "eve", "GET", "/api/agent/runs/"+asked.RunID, "")
	if err != nil || other.HTTP != http.StatusNotFound {
		t.Errorf("%v %d %s; want other.HTTP %v", err, other.HTTP, other.Body, http.StatusNotFound)
	}
}
