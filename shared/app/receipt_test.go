package app_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/engine/planner"
	"github.com/countersign-run/countersign/shared/receipts/receipt"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

// keys returns the published keys, which need no sign-in.
func (w *proved) keys() receipt.Keys {
	w.t.Helper()
	a := w.call("GET", "/.well-known/jwks.json", "")
	keys, err := receipt.ParseKeys(a.Body)
	if err != nil || a.HTTP != http.StatusOK {
		w.t.Fatalf("%d %v %s; want a.HTTP %v", a.HTTP, err, a.Body, http.StatusOK)
	}
	return keys
}

// receipt returns the receipt of an e-mail that was edited before it was sent.
func takeReceipt(t *testing.T) (w linked, runID, threadID string, file []byte) {
	t.Helper()
	w = newLinked(t)
	w.SetModel(testkit.Wants("gmail_send", testkit.Mail("bob@example.com", "old subject", "old words")))
	asked := w.ask()
	w.wants("the edit", w.edit(asked.Approvals[0], testkit.Mail("carl@example.com", "new subject", "new words")),
		http.StatusOK, "")
	w.deliver()
	a := w.call("GET", "/api/agent/runs/"+asked.RunID+"/receipt", "")
	if a.HTTP != http.StatusOK {
		t.Fatalf("%d %s; want a.HTTP %v", a.HTTP, a.Body, http.StatusOK)
	}
	return w, asked.RunID, asked.ThreadID, a.Body
}

func TestReceiptContents(t *testing.T) {
	w, runID, threadID, file := takeReceipt(t)
	if got, why := receipt.Verify(file, w.keys()); got != receipt.True {
		t.Fatalf("%s: %s; want got %v", got, why, receipt.True)
	}
	var f receipt.File
	var r receipt.Receipt
	if err := json.Unmarshal(file, &f); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(f.Receipt, &r); err != nil {
		t.Fatal(err)
	}
	if r.RunID != runID || r.ThreadID != threadID || r.User != "ana" || r.Asked != "please do it" ||
		r.Status != "completed" || len(r.Actions) != 1 || len(r.Nonce) != 64 {
		t.Fatalf("%s", f.Receipt)
	}
	act := r.Actions[0]
	if !strings.Contains(string(act.Record.Args), "new words") || len(act.Shown) != 1 ||
		act.Shown[0].Preview.Fields[2].Value != "old subject" || act.Shown[0].Decision != "approve_with_edits" ||
		act.Record.DecidedBy != "ana" || !strings.Contains(act.Record.Link, "mail.google.com") {
		t.Errorf("%s", f.Receipt)
	}
	if len(act.Entries) < 3 || act.Entries[len(act.Entries)-1] > r.Head.Seq || len(r.Entries) != int(r.Head.Seq) {
		t.Errorf("entries %v of %d", act.Entries, r.Head.Seq)
	}
	other, err := w.Call(t.Context(), "eve", "GET", "/api/agent/runs/"+runID+"/receipt", "")
	if err != nil || other.HTTP != http.StatusNotFound {
		t.Errorf("another user: %v %d", err, other.HTTP)
	}
	if a := w.call("DELETE", "/api/agent/threads/"+threadID, ""); a.HTTP != http.StatusOK {
		t.Fatalf("%d %s; want a.HTTP %v", a.HTTP, a.Body, http.StatusOK)
	}
	if a := w.call("GET", "/api/agent/runs/"+runID+"/receipt", ""); a.HTTP != http.StatusNotFound {
		t.Errorf("of a deleted run: %d %s", a.HTTP, a.Body)
	}
	if got, why := receipt.Verify(file, w.keys()); got != receipt.True {
		t.Errorf("the copy that was kept: %s: %s", got, why)
	}
}

// TestReceiptTampered flips each byte in two ways: to another character of the same kind, and to a character of no
// kind.
func TestReceiptTampered(t *testing.T) {
	realpart.Unraced(t)
	w, _, _, file := takeReceipt(t)
	keys := w.keys()
	changed := 0
	for i := range file {
		for _, bit := range []byte{1, 0x80} {
			file[i] ^= bit
			switch got, why := receipt.Verify(file, keys); got {
			case receipt.True:
				t.Fatalf("byte %d (%q) may be another: %s", i, file[i], why)
			case receipt.Changed:
				changed++
			}
			file[i] ^= bit
		}
		if got, why := receipt.Verify(bytes.Join([][]byte{file[:i], file[i+1:]}, nil), keys); got == receipt.True &&
			i != len(file)-1 { // the final line feed can be omitted
			t.Fatalf("byte %d may be missing: %s", i, why)
		}
	}
	if changed == 0 {
		t.Error("no byte is said to be changed")
	}
	for what, other := range map[string][]byte{"a space": append(bytes.Clone(file), ' '),
		"a line feed more": append(bytes.Clone(file), '\n'), "nothing": nil, "no receipt": []byte(`{"ok":true}`)} {
		if got, why := receipt.Verify(other, keys); got == receipt.True {
			t.Errorf("%s: %s", what, why)
		}
	}
	if got, _ := receipt.Verify(file, newLinked(t).keys()); got != receipt.False {
		t.Errorf("by another server's keys it is %s", got)
	}
}

// TestReceiptWithoutPublicKey checks that a key that is not published signs nothing, because no one could verify the
// receipt.
func TestReceiptWithoutPublicKey(t *testing.T) {
	const key = "MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
	w := newLinked(t)
	published, err := json.Marshal(w.keys())
	if err != nil {
		t.Fatal(err)
	}
	_, err = testkit.New(t.Context(), testkit.Options{Dir: t.TempDir(),
		Settings: []string{"RECEIPT_KEY=" + key, "RECEIPT_JWKS=" + string(published)}})
	if err == nil || !strings.Contains(err.Error(), "RECEIPT_JWKS") || strings.Contains(err.Error(), key) {
		t.Errorf("it starts with a key that is not published: %v", err)
	}
}

// TestReceiptOfSession checks that the receipt has every executed call, with the decision or grant that allowed it, and
// the plan with the grant.
func TestReceiptOfSession(t *testing.T) {
	w := deploy(t)
	w.addSite()
	w.SetModel(opensIssues)
	var s planner.Session
	w.plans(&s, "", fmt.Sprintf(`{"prompt":"open two issues","repoUrl":"%s/acme/web","deadline":%q}`,
		w.App.Config.GitHubURL, time.Now().Add(time.Hour).Format(time.RFC3339)))
	path := "/" + s.SessionID
	w.plans(&s, path, "")
	w.plans(&s, path+"/execute", `{"planHash":"`+s.PlanHash+`"}`)
	w.deliver()
	w.plans(&s, path, "")
	if len(s.Approvals) != 1 {
		t.Fatalf("it stands as %+v", s)
	}
	yes := `{"approvalId":"` + s.Approvals[0].ApprovalID + `","decision":"approve_once","comment":"this one too"}`
	w.wants("the yes", w.call("POST", "/api/agent/approvals/resolve", yes), http.StatusOK, "")
	w.deliver()
	file := w.call("GET", "/api/agent/runs"+path+"/receipt", "").Body
	if got, why := receipt.Verify(file, w.keys()); got != receipt.True {
		t.Fatalf("%s: %s; want got %v", got, why, receipt.True)
	}
	var f receipt.File
	var r receipt.Receipt
	if err := errors.Join(json.Unmarshal(file, &f), json.Unmarshal(f.Receipt, &r)); err != nil {
		t.Fatal(err)
	}
	if len(r.Plans) != 1 || r.Plans[0].Hash != s.PlanHash ||
		!strings.Contains(string(r.Plans[0].Plan), s.Grants[0].ID) {
		t.Errorf("the plan that was confirmed: %+v", r.Plans)
	}
	var by []string
	for _, a := range r.Actions {
		if a.Tool != "github.createIssue" || a.Status != run.ActionCompleted {
			continue
		}
		if a.Record == nil || a.Record.Result == nil || len(a.Entries) == 0 {
			t.Errorf("an issue without a record: %+v", a)
			continue
		}
		by = append(by, a.Record.Grant+" "+a.Record.Comment)
	}
	if want := []string{s.Grants[0].ID + " ", " this one too"}; !slices.Equal(by, want) {
		t.Errorf("the issues were opened by %q, want %q: %s", by, want, f.Receipt)
	}
}
