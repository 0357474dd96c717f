package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

// mailed sends an e-mail of ana's from the web app's origin, and returns the run.
func (w *env) mailed(text string) answer {
	w.t.Helper()
	w.wants(text)
	a := w.send("POST", "/api/agent/run", "ana", `{"prompt":"mail bob"}`, header("Origin", webOrigin))
	w.decide(a, "approve_once")
	w.push()
	return a
}

func (w *env) decide(got answer, decision string) {
	w.t.Helper()
	p := w.send("GET", "/api/agent/runs/"+got.at("runId"), "ana", "")
	id := p.at("actions", "0", "approvalId")
	if r := w.send("POST", "/api/agent/approvals/resolve", "ana", `{"approvalId":"`+id+`","decision":"`+decision+
		`"}`); r.StatusCode != http.StatusOK {
		w.t.Fatalf("%s %s; want r.StatusCode %v", r.Status, r.body, http.StatusOK)
	}
}

// TestToolContext covers seed 000 §5: a tool call carries the user, the origin, the run and the action.
func TestToolContext(t *testing.T) {
	w := newEnv(t)
	r := w.mailed("ten")
	if len(w.calls) != 1 {
		t.Fatalf("%d calls", len(w.calls))
	}
	c := w.calls[0]
	if c.UID != "ana" || c.Origin != webOrigin || c.RunID != r.at("runId") ||
		c.ActionID != r.at("actions", "0", "actionId") {
		t.Errorf("the tool was called with %+v", c)
	}
}

// TestRecordOfAction covers seed 000 §9: an action's record and its audit entries have all fields.
func TestRecordOfAction(t *testing.T) {
	w := newEnv(t)
	w.wants("ten")
	r := w.send("POST", "/api/agent/run", "ana", `{"prompt":"mail bob"}`)
	card := w.send("GET", "/api/agent/approvals/pending", "ana", "")
	w.decide(r, "approve_once")
	w.push()
	a := w.send("GET", "/api/agent/runs/"+r.at("runId"), "ana", "")
	hash := card.at("approvals", "0", "argsHash")
	keyed := audit.InputHash(w.stored(r.at("runId")).Nonce, hash)
	want := map[string]string{"modelName": "script", "toolName": "mail", "tool": "mail", "inputHash": keyed,
		"policyDecision": "require_approval",
		"approvalId":     card.at("approvals", "0", "approvalId"), "executionStatus": "succeeded"}
	for field, value := range want {
		if got := a.at("actions", "0", field); got != value {
			t.Errorf("the record has %s %q, want %q", field, got, value)
		}
	}
	for _, field := range []string{"plannedAt", "updatedAt"} {
		if a.at("actions", "0", field) == "" {
			t.Errorf("the record has no %s", field)
		}
	}
	entries := w.send("GET", "/api/agent/audit?runId="+r.at("runId"), "ana", "")
	var page struct{ Entries []audit.Entry }
	if err := json.Unmarshal(entries.body, &page); err != nil || len(page.Entries) != 4 {
		t.Fatalf("%v %s; want len(page.Entries) 4", err, entries.body)
	}
	for _, e := range page.Entries {
		if e.Model != "script" || e.Tool != "mail" || e.InputHash != keyed || e.PolicyDecision != "require_approval" ||
			e.ApprovalID == "" || e.ExecutionStatus == "" || e.At.IsZero() {
			t.Errorf("entry %d is %+v", e.Seq, e)
		}
	}
	if strings.Contains(string(entries.body), hash) {
		t.Errorf("the audit holds the hash of the arguments itself: %s", entries.body)
	}
}

// stored returns the run's document.
func (w *env) stored(id string) (r run.Run) {
	w.t.Helper()
	docs, err := w.store.Get(context.Background(), document.RunPath(id))
	if err != nil || !docs[0].Exists() || json.Unmarshal(docs[0].Data, &r) != nil {
		w.t.Fatalf("run %s: %v", id, err)
	}
	return r
}

// TestDeletedContentHashes compares the hashes that remain after a deletion with every hash that can be
// computed from the e-mail.
func TestDeletedContentHashes(t *testing.T) {
	w := newEnv(t)
	r := w.mailed("Oncology appointment")
	before := w.stored(r.at("runId"))
	if len(before.Nonce) != audit.NonceSize {
		t.Fatalf("a nonce of %d bytes", len(before.Nonce))
	}
	w.mailed("Oncology appointment")
	s, err := run.Fold(before.Log.Tail)
	if err != nil {
		t.Fatal(err)
	}
	hash := s.Actions[0].ArgsHash
	if a := w.send("DELETE", "/api/agent/threads/"+r.at("threadId"), "ana", ""); a.StatusCode != http.StatusOK {
		t.Fatalf("%s %s; want a.StatusCode %v", a.Status, a.body, http.StatusOK)
	}
	left := w.send("GET", "/api/agent/audit?limit=200", "ana", "")
	var page struct{ Entries []audit.Entry }
	if err := json.Unmarshal(left.body, &page); err != nil || len(page.Entries) < 10 {
		t.Fatalf("%v %s", err, left.body)
	}
	hashes := map[string]string{}
	for _, e := range page.Entries {
		if e.InputHash == hash || e.InputHash == audit.InputHash(nil, hash) {
			t.Errorf("entry %d of %s can be found by who guesses the e-mail", e.Seq, e.RunID)
		}
		if other, seen := hashes[e.InputHash]; seen && other != e.RunID && e.InputHash != "" {
			t.Errorf("two runs with the same e-mail have the same hash in the audit")
		}
		hashes[e.InputHash] = e.RunID
	}
	for _, path := range []string{document.RunPath(before.ID), document.ApprovalPath(run.ApprovalID(before.ID, 1)),
		document.ThreadPath(before.ThreadID)} {
		if docs, err := w.store.Get(context.Background(), path); err != nil || docs[0].Exists() {
			t.Errorf("%s is left: %v", path, err)
		}
	}
}

// TestForeignReadCost checks that a request for another user's run or conversation costs as many reads as one for a
// missing document, even if it is long and has parts in documents of their own.
func TestForeignReadCost(t *testing.T) {
	w := newEnv(t)
	r := w.mailed("ten")
	w.spill(r)
	none := "aaaaaaaaaaaaaaaaaaaaaaaaaa"
	counted := faulty.Count(w.store)
	w.rec.Store, w.loop.Store = counted, counted
	cost := func(method, path, body string) faulty.Counts {
		counted.Take()
		if a := w.send(method, path, "eve", body); a.StatusCode != http.StatusNotFound {
			t.Fatalf("%s %s: %s %s; want a.StatusCode %v", method, path, a.Status, a.body, http.StatusNotFound)
		}
		c := counted.Take()
		// the document's size shows in these counts; it must be read before its owner is known
		c.Get.Bytes, c.Query.Bytes, c.Watch.Bytes = 0, 0, 0
		return c
	}
	for _, tt := range []struct{ method, path, body string }{
		{"GET", "/api/agent/runs/$RUN", ""},
		{"GET", "/api/agent/runs/$RUN/events", ""},
		{"POST", "/api/agent/runs/$RUN/cancel", ""},
		{"GET", "/api/agent/threads/$THREAD/messages", ""},
		{"DELETE", "/api/agent/threads/$THREAD", ""},
		{"GET", "/api/agent/audit?runId=$RUN", ""},
		{"POST", "/api/agent/approvals/resolve", `{"approvalId":"$RUN-1","decision":"reject"}`},
		{"POST", "/api/agent/run", `{"prompt":"x","threadId":"$THREAD"}`},
	} {
		foreign := strings.NewReplacer("$RUN", r.at("runId"), "$THREAD", r.at("threadId"))
		missing := strings.NewReplacer("$RUN", none, "$THREAD", none)
		a, b := cost(tt.method, foreign.Replace(tt.path), foreign.Replace(tt.body)),
			cost(tt.method, missing.Replace(tt.path), missing.Replace(tt.body))
		if a != b {
			t.Errorf("%s %s reads %+v for another user's, and %+v for none", tt.method, tt.path, a, b)
		}
	}
}

// spill moves the run's events and the conversation's messages to documents of their own, as happens to long ones.
func (w *env) spill(a answer) {
	w.t.Helper()
	ctx := context.Background()
	r := w.stored(a.at("runId"))
	docs, err := w.store.Get(ctx, document.RunPath(r.ID), document.ThreadPath(r.ThreadID))
	if err != nil {
		w.t.Fatal(err)
	}
	var thread run.Thread
	if err := json.Unmarshal(docs[1].Data, &thread); err != nil {
		w.t.Fatal(err)
	}
	encode := func(v any) []byte {
		data, err := strictjson.Marshal(v)
		if err != nil {
			w.t.Fatal(err)
		}
		return data
	}
	writes := []store.Write{store.Create(document.ChunkPath(docs[0].Path, "events", 1), nil, encode(r.Log.Tail)),
		store.Create(document.ChunkPath(docs[1].Path, "messages", 1), nil, encode(thread.Log.Tail))}
	r.Log.Chunks, r.Log.Tail, thread.Log.Chunks, thread.Log.Tail = []int64{1}, nil, []int64{1}, nil
	writes = append(writes, store.Update(docs[0].Path, docs[0].Version, docs[0].Fields, encode(r)),
		store.Update(docs[1].Path, docs[1].Version, docs[1].Fields, encode(thread)))
	if _, err := w.store.Commit(ctx, writes...); err != nil {
		w.t.Fatal(err)
	}
}

// TestPageOfExactSize checks each paged list: exactly one page has no next page, and one more entry has one.
func TestPageOfExactSize(t *testing.T) {
	w := newEnv(t)
	first := w.mailed("ten")
	w.mailed("eleven")
	w.model.Restart()
	for range 2 {
		w.asks("soon")
		w.send("POST", "/api/agent/run", "ana", `{"prompt":"mail bob"}`)
	}
	for list, path := range map[string]string{"threads": "/api/agent/threads?", "audit": "/api/agent/audit?",
		"entries":   "/api/agent/audit?runId=" + first.at("runId") + "&",
		"approvals": "/api/agent/approvals/pending?"} {
		key := list
		if list == "audit" {
			key = "entries"
		}
		n := len(w.send("GET", path+"limit=100", "ana", "").items(key))
		if n < 2 {
			t.Fatalf("%s: %d entries", list, n)
		}
		whole := w.send("GET", fmt.Sprintf("%slimit=%d", path, n), "ana", "")
		if len(whole.items(key)) != n || whole.at("nextCursor") != "" {
			t.Errorf("%s: a page of all %d has a next one: %s", list, n, whole.body)
		}
		cut := w.send("GET", fmt.Sprintf("%slimit=%d", path, n-1), "ana", "")
		if len(cut.items(key)) != n-1 || cut.at("nextCursor") == "" {
			t.Errorf("%s: a page of %d of %d has no next one: %s", list, n-1, n, cut.body)
			continue
		}
		rest := w.send("GET", fmt.Sprintf("%slimit=%d&cursor=%s", path, n-1, cut.at("nextCursor")), "ana", "")
		if len(rest.items(key)) != 1 || rest.at("nextCursor") != "" {
			t.Errorf("%s: the last page is %s", list, rest.body)
		}
	}
}

// TestWaitForCard has another device wait for a card. Its request is answered when the card appears and when it is
// decided.
func TestWaitForCard(t *testing.T) {
	w := newEnv(t)
	const path = "/api/agent/approvals/pending?since="
	mark := w.send("GET", path, "ana", "").at("mark")
	waits := func(r *http.Request) { r.Header.Set("Prefer", "wait=50") }
	await := func() chan answer {
		got := make(chan answer, 1)
		go func() { got <- w.send("GET", path+mark, "ana", "", waits) }()
		return got
	}
	got := await()
	w.asks("soon")
	w.send("POST", "/api/agent/run", "ana", `{"prompt":"mail bob"}`)
	a := <-got
	if len(a.items("approvals")) != 1 || a.at("mark") == mark || a.Header.Get("Preference-Applied") != "wait=50" {
		t.Fatalf("the other device is told %s", a.body)
	}
	mark = a.at("mark")
	got = await()
	w.send("POST", "/api/agent/approvals/resolve", "ana", fmt.Sprintf(`{"approvalId":%q,"decision":"reject"}`,
		a.at("approvals", "0", "approvalId")))
	if a = <-got; len(a.items("approvals")) != 0 {
		t.Errorf("the other device is told %s", a.body)
	}
}

// TestForeignCursors uses a cursor with another list and as another user. It is refused, and the error names the field.
func TestForeignCursors(t *testing.T) {
	w := newEnv(t)
	first := w.mailed("ten")
	w.mailed("eleven")
	w.model.Restart()
	lists := map[string]string{"threads": "/api/agent/threads?limit=1", "audit": "/api/agent/audit?limit=1",
		"a run's": "/api/agent/audit?limit=1&runId=" + first.at("runId")}
	for range 2 {
		w.asks("soon")
		w.send("POST", "/api/agent/run", "ana", `{"prompt":"mail bob"}`)
	}
	lists["pending"] = "/api/agent/approvals/pending?limit=1"
	cursors := map[string]string{}
	for name, path := range lists {
		page := w.send("GET", path, "ana", "")
		if cursors[name] = page.at("nextCursor"); cursors[name] == "" {
			t.Fatalf("%s has no next page: %s", name, page.body)
		}
	}
	for of, cursor := range cursors {
		for in, path := range lists {
			for _, uid := range []string{"ana", "eve"} {
				if in == "a run's" && uid == "eve" {
					continue // she cannot read the list at all
				}
				a := w.send("GET", path+"&cursor="+cursor, uid, "")
				own := of == in && uid == "ana"
				if own && a.StatusCode != http.StatusOK || !own &&
					(a.StatusCode != http.StatusBadRequest || a.at("error", "field") != "cursor") {
					t.Errorf("the cursor of %s in %s of %s: %s %s", of, in, uid, a.Status, a.body)
				}
			}
		}
	}
}
