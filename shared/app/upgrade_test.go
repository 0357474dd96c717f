package app_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit"
)

// beforeMend has the documents that the release before calls had an account (tool.Place) made of three runs of one
// user: an e-mail and a declared action that wait for approval, and an action that needed none. Their deadlines are far
// away.
const beforeMend = "testdata/before-mend.json"

// load stores the documents of a file.
func (w *proved) load(file string) {
	w.t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		w.t.Fatal(err)
	}
	var docs []stored
	if err := json.Unmarshal(text, &docs); err != nil {
		w.t.Fatal(err)
	}
	w.store(docs)
}

// store stores documents of a file.
func (w *proved) store(docs []stored) {
	w.t.Helper()
	var writes []store.Write
	for _, d := range docs {
		fields := map[string]any{}
		for name, raw := range d.Fields {
			var at struct{ Time time.Time }
			var number int64
			var word string
			switch {
			case json.Unmarshal(raw, &word) == nil:
				fields[name] = word
			case json.Unmarshal(raw, &number) == nil:
				fields[name] = number
			case json.Unmarshal(raw, &at) == nil:
				fields[name] = at.Time
			default:
				w.t.Fatalf("%s: %s is %s", d.Path, name, raw)
			}
		}
		var data bytes.Buffer
		if err := json.Compact(&data, d.Data); err != nil {
			w.t.Fatal(err)
		}
		writes = append(writes, store.Create(d.Path, fields, data.Bytes()))
	}
	if _, err := w.App.Store.Commit(w.t.Context(), writes...); err != nil {
		w.t.Fatal(err)
	}
}

// TestDocumentsOfTheReleaseBefore opens what that release stored. The e-mail's card does not name the account, so it is
// requested again; the action's card is approved as it is. Both are executed once.
func TestDocumentsOfTheReleaseBefore(t *testing.T) {
	onEachStore(t, func(t *testing.T, settings ...string) {
		e := newEndpoint(t)
		w := withActions(t, e, settings...)
		w.load(beforeMend)
		mail, act := w.waiting()["gmail_send"], w.waiting()["action_cart_add"]
		if got, err := w.Resolve(t.Context(), "ana", mail, "approve_once"); err != nil || got.HTTP != 409 ||
			got.Error.Code != "stale_view" {
			t.Fatalf("a card without an account was approved: %v %s", err, got.Body)
		}
		afresh := w.waiting()["gmail_send"]
		if afresh.ApprovalID == mail.ApprovalID || !bytes.Equal(afresh.Args, mail.Args) {
			t.Fatalf("asked afresh: %+v, was %+v", afresh, mail)
		}
		w.SetModel(testkit.Says("It is done."))
		for _, a := range []testkit.Approval{afresh, act} {
			if got, err := w.Resolve(t.Context(), "ana", a, "approve_once"); err != nil || got.HTTP != 200 {
				t.Fatalf("%s: %v %s; want got.HTTP 200", a.Tool, err, got.Body)
			}
			w.deliver()
			r := w.call("GET", "/api/agent/runs/"+a.RunID, "")
			if r.Status != "completed" || r.Summary != "It is done." {
				t.Errorf("%s: %s %s; want r.Status “completed”, r.Summary “It is done.”", a.Tool, r.Status, r.Summary)
			}
			w.verifies(a.RunID)
		}
		if n := len(w.Google.Messages()); n != 1 || len(e.requests()) != 1 {
			t.Errorf("%d e-mails, requests %v", n, e.requests())
		}
		if left := w.waiting(); len(left) > 0 {
			t.Errorf("still waiting: %+v", left)
		}
		page := w.call("GET", "/api/agent/threads", "")
		if n := strings.Count(string(page.Body), `"threadId"`); n != 3 {
			t.Errorf("%d conversations are listed: %s", n, page.Body)
		}
	})
}

// fieldOfLater is a member that only a later release knows.
const fieldOfLater = `"later":{"of":1.50}`

// writtenByLater adds the member to a document, as a later release does that uses the same store.
func (w *proved) writtenByLater(path string) {
	w.t.Helper()
	docs, err := w.App.Store.Get(w.t.Context(), path)
	if err != nil || !docs[0].Exists() {
		w.t.Fatalf("%s: %v", path, err)
	}
	d := docs[0]
	data := append([]byte("{"+fieldOfLater+","), bytes.TrimPrefix(d.Data, []byte("{"))...)
	if _, err := w.App.Store.Commit(w.t.Context(), store.Update(path, d.Version, d.Fields, data)); err != nil {
		w.t.Fatal(err)
	}
}

// TestReleasesOnOneStore checks that a run goes through three releases. The release before this one began it, a
// later one has written all of its documents, and this release renames its conversation, decides and ends it. The call
// takes place once, and what only the later release knows is still there.
func TestReleasesOnOneStore(t *testing.T) {
	e := newEndpoint(t)
	w := withActions(t, e)
	w.load(beforeMend)
	act := w.waiting()["action_cart_add"]
	thread := w.call("GET", "/api/agent/runs/"+act.RunID, "").ThreadID
	paths := []string{document.RunPath(act.RunID), document.ThreadPath(thread),
		document.ApprovalPath(act.ApprovalID), document.UserPath("ana")}
	for _, path := range paths {
		w.writtenByLater(path)
	}
	if a := w.call("PATCH", "/api/agent/threads/"+thread, `{"title":"The cart"}`); a.HTTP != 200 {
		t.Fatalf("%d %s", a.HTTP, a.Body)
	}
	w.SetModel(testkit.Says("It is done."))
	if a, err := w.Resolve(t.Context(), "ana", act, "approve_once"); err != nil || a.HTTP != 200 {
		t.Fatalf("%v %s", err, a.Body)
	}
	w.deliver()
	if r := w.call("GET", "/api/agent/runs/"+act.RunID, ""); r.Status != "completed" || len(e.requests()) != 1 {
		t.Errorf("%s with %v: %s", r.Status, e.requests(), r.Summary)
	}
	w.verifies(act.RunID)
	for _, path := range paths {
		docs, err := w.App.Store.Get(t.Context(), path)
		if err != nil || !bytes.Contains(docs[0].Data, []byte(fieldOfLater)) {
			t.Errorf("%s has lost what a later release wrote: %v %s", path, err, docs[0].Data)
		}
	}
}

// waiting returns the user's waiting approvals, by tool.
func (w *proved) waiting() map[string]testkit.Approval {
	w.t.Helper()
	out := map[string]testkit.Approval{}
	for _, a := range w.call("GET", "/api/agent/approvals/pending", "").Approvals {
		out[a.Tool] = a
	}
	return out
}

// verifies checks the run's audit chain.
func (w *proved) verifies(runID string) {
	w.t.Helper()
	var r struct{ Audit audit.Head }
	if _, err := document.Get(w.t.Context(), w.App.Store, document.RunPath(runID), &r); err != nil {
		w.t.Fatal(err)
	}
	var entries []audit.Entry
	for d, err := range document.All(w.t.Context(), w.App.Store, document.AuditOfChain(runID, 50)) {
		if err != nil {
			w.t.Fatal(err)
		}
		entry, err := audit.Decode(d.Data)
		if err != nil {
			w.t.Fatal(err)
		}
		entries = append(entries, entry)
	}
	for _, f := range audit.Verify(entries, r.Audit) {
		w.t.Errorf("run %s: %s", runID, f)
	}
}
