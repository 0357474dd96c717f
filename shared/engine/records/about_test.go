package records_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/engine/records"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/store/memory"
)

// TestAboutOfUser has entries of five runs: one of the user, one of another user, one in a conversation that is being
// deleted, an unreadable one, and a missing one. Only the first gets a description.
func TestAboutOfUser(t *testing.T) {
	st := memory.New(time.Now)
	keep := func(id, uid string, deleting bool, events ...run.Event) {
		for i := range events {
			events[i].Seq, events[i].At = int64(i+1), began
		}
		put(t, st, document.ThreadPath(id), nil, run.Thread{ID: id, UID: uid, Deleting: deleting})
		put(t, st, document.RunPath(id), document.RunFields{UID: uid, ThreadID: id}.Map(id), run.Run{ID: id, UID: uid,
			ThreadID: id, Log: document.Log[run.Event]{Tail: events, Count: int64(len(events))}})
	}
	story := func(action string) []run.Event {
		return []run.Event{{Type: run.RunQueued, Queued: &run.Input{Prompt: "p"}},
			{Type: run.RunStatusChange, Status: run.Planning}, {Type: run.ModelAnswered, Turn: &run.Turn{Calls: 1}},
			{Type: run.ActionProposed, ActionID: action, Proposed: &run.ProposedCall{Turn: 1, Tool: "send",
				SideEffect: true, Place: tool.Place{Name: "ana@x.org"},
				Args: json.RawMessage(`{"body":"secret","cc":["c@x.org"],"subject":"Hi\nthere","to":["a@x.org","b@x.org",` +
					`"d@x.org","e@x.org","f@x.org"]}`)}}}
	}
	keep("own", "ana", false, story("of own")...)
	keep("eves", "eve", false, story("of eves")...)
	keep("deleting", "ana", true, story("of deleting")...)
	keep("unreadable", "ana", false, story("of unreadable")[3:]...)
	var page records.AuditPage
	for _, id := range []string{"own", "own", "eves", "deleting", "unreadable", "gone"} {
		page.Entries = append(page.Entries, audit.Entry{RunID: id, ActionID: "of " + id})
	}
	r := &records.Records{Store: st, Now: time.Now}
	if err := r.AddAbout(t.Context(), "ana", &page); err != nil {
		t.Fatal(err)
	}
	want := map[string]run.About{"of own": {To: []string{"a@x.org", "b@x.org", "d@x.org", "e@x.org", "f@x.org"},
		More: 1, What: "Hi there", Where: "ana@x.org", State: run.CameRuns}}
	if !reflect.DeepEqual(page.About, want) {
		t.Errorf("it tells\n%+v\nand not\n%+v", page.About, want)
	}
}
