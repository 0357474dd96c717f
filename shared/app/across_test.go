package app_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit"
)

// beforeFile has what the release before and the release that recorded the file wrote on one store. The flag -earlier
// makes it again.
const beforeFile = "testdata/before.json"

// The runs of beforeFile, and the keys of earlier.Read: a run that the release before begins and ends, and one that
// this release begins and ends. The other release decides.
const (
	theirs = "begun by the release before"
	ours   = "decided by the release before"
)

// recordBefore lets the release before and this release share two runs, each ended by the release that began it.
func recordBefore(t *testing.T) {
	w, now := newRecorder(t)
	tomorrow := now().Add(24 * time.Hour)
	ask := func(state string, at time.Time) testkit.Answer {
		return w.asks(state, "calendar_event_create", testkit.Event("shared", at))
	}
	as := func(of release, do func()) {
		w.p = w.start(of)
		do()
		err := w.p.in.Close()
		<-w.p.ended
		if err != nil || w.p.cmd.ProcessState.ExitCode() != 0 {
			t.Fatalf("the process of %s release: %v\n%s", of, err, w.p.logs.Bytes())
		}
	}
	var a, b testkit.Answer
	read := map[string][]string{}
	as(built, func() { a = ask(theirs, tomorrow) })
	begun := w.documents()
	as(this, func() {
		w.decides(a, "approve_once", false)
		b = ask(ours, tomorrow.Add(24*time.Hour)) // the time of the first event may be taken by then
	})
	read[theirs], read[ours] = w.members(a), w.members(b)
	as(built, func() {
		w.pushes(a.RunID)
		w.decides(b, "approve_once", false)
	})
	decided := w.documents()
	as(this, func() { w.pushes(b.RunID) })
	if n := len(w.cloud.Google.Events()); n != 2 {
		t.Fatalf("%d events; want 2", n)
	}
	e := w.record(now())
	e.Read = read
	of := func(d stored) bool { return strings.Contains(d.Path, a.RunID) || strings.Contains(d.Path, a.ThreadID) }
	e.Docs = slices.DeleteFunc(decided, of)
	for _, d := range begun {
		if of(d) {
			e.Docs = append(e.Docs, d)
		}
	}
	if err := os.WriteFile(beforeFile, inLines(e), 0o644); err != nil {
		t.Fatal(err)
	}
}

// members returns the members of the documents of a run.
func (w *recorder) members(r testkit.Answer) []string {
	st := w.opened()
	defer st.Close()
	return membersOf(w.t, st, r)
}

// membersOf returns the members of a run's documents, with the types of events and the values that are words of ours.
func membersOf(t testing.TB, st store.Store, r testkit.Answer) []string {
	t.Helper()
	docs, err := st.Get(t.Context(), document.RunPath(r.RunID), document.ThreadPath(r.ThreadID),
		document.ApprovalPath(r.Approvals[0].ApprovalID))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, d := range docs {
		var v any
		if err := json.Unmarshal(d.Data, &v); err != nil {
			t.Fatalf("%s: %v", d.Path, err)
		}
		kind, _, _ := strings.Cut(d.Path, "/")
		addMembers(found, kind, v)
		for name := range d.Fields {
			found[kind+" field "+name] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// wordsOfOurs are the members whose values are words of ours.
var wordsOfOurs = []string{"type", "status", "kind", "decision", "rule", "executionStatus", "format"}

func addMembers(found map[string]bool, at string, v any) {
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			addMembers(found, at+"[]", item)
		}
	case map[string]any:
		if kind, is := v["type"].(string); is {
			at += "(" + kind + ")"
		}
		for name, item := range v {
			addMembers(found, at+"."+name, item)
			if slices.Contains(wordsOfOurs, name) {
				found[fmt.Sprintf("%s.%s=%v", at, name, item)] = true
			}
		}
	default:
		found[at] = true
	}
}

// TestReleaseBefore shares runs with the release before, as recorded in beforeFile. A run that it began and this
// release decides, and a run that this release begins, have only members that it has read before it ended the one and
// decided about the other. A run whose decision it recorded is ended by this release, with one effect.
//
// If this release writes something new, record the runs again: with -earlier COMMIT, the release before is built, and
// must read the new documents.
func TestReleaseBefore(t *testing.T) {
	if *earlierCommit != "" {
		t.Run("record", recordBefore)
	}
	e := recorded(t, beforeFile)
	onEachStore(t, func(t *testing.T, settings ...string) {
		w, _ := continues(t, e, settings...)
		pending := w.call("GET", "/api/agent/approvals/pending", "").Approvals
		if len(pending) != 1 || pending[0].RunID != e.Runs[theirs] {
			t.Fatalf("%d cards wait; want that of the run %s", len(pending), e.Runs[theirs])
		}
		a := w.call("GET", "/api/agent/runs/"+e.Runs[theirs], "")
		if got, err := w.Resolve(t.Context(), "ana", pending[0], "approve_once"); err != nil || got.HTTP != 200 {
			t.Fatalf("%v, the decision is answered with %d: %s; want 200", err, got.HTTP, got.Body)
		}
		w.SetModel(testkit.Wants("calendar_event_create", testkit.Event("shared", e.At.Add(24*time.Hour))))
		b := w.ask()
		for state, r := range map[string]testkit.Answer{theirs: a, ours: b} {
			for _, member := range membersOf(t, w.App.Store, r) {
				if !slices.Contains(e.Read[state], member) {
					t.Errorf("the release %s has not read %q in a run %s: record it with -earlier", e.Release, member,
						state)
				}
			}
		}
		before := len(w.Google.Events())
		w.resumes(e.Runs[ours])
		r := w.call("GET", "/api/agent/runs/"+e.Runs[ours], "")
		if n := len(w.Google.Events()) - before; r.Status != "completed" || n != 1 {
			t.Errorf("the run is %s with %d events: %s; want completed with 1", r.Status, n, r.Body)
		}
		w.verifies(e.Runs[ours])
	})
}
