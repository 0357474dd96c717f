package app_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/decision"
	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
)

// TestForgedGrant changes a confirmed plan in the store. Its grant then covers nothing: the user is asked.
func TestForgedGrant(t *testing.T) {
	for name, forge := range map[string]func(e *run.Event){
		"a grant for more calls": func(e *run.Event) {
			if e.Planned != nil && e.Planned.Proposed != nil {
				e.Planned.Proposed.Plan = bytes.Replace(e.Planned.Proposed.Plan, []byte(`"maxCalls":1`),
					[]byte(`"maxCalls":9`), 1)
			}
		},
		"a plan that is less strict": func(e *run.Event) {
			if e.Planned != nil && e.Planned.Confirmed != nil {
				e.Planned.Confirmed.Strict = false
			}
		},
		"a confirmation without a signature": func(e *run.Event) {
			if e.Decided != nil {
				e.Decided.Proof = nil
			}
		},
		"a confirmation with another signature": func(e *run.Event) {
			if e.Decided != nil {
				e.Decided.Proof = &decision.Signature{Key: "mine", At: e.Decided.Proof.At, Until: e.Decided.Proof.Until,
					Sig: make([]byte, 64)}
			}
		},
	} {
		w, s := plannedIssues(t)
		path := "/" + s.SessionID
		w.plans(&s, path+"/execute", `{"strict":true,"planHash":"`+s.PlanHash+`"}`)
		if !w.rewrite(document.RunPath(s.SessionID), forge) {
			t.Fatalf("%s: nothing was changed", name)
		}
		w.deliver()
		w.plans(&s, path, "")
		if n := len(w.GitHub.View()[0].Issues); n != 0 || s.Status != plan.StatusExecuting || len(s.Approvals) != 1 {
			t.Errorf("%s: %d issues were opened without a question: %+v", name, n, s)
		}
	}
}

// rewrite changes each event of a run in the store. It reports whether any is different now.
func (w *proved) rewrite(path string, change func(e *run.Event)) bool {
	w.t.Helper()
	docs, err := w.App.Store.Get(w.t.Context(), path)
	if err != nil {
		w.t.Fatal(err)
	}
	var r run.Run
	if err := document.Decode(docs[0], &r); err != nil {
		w.t.Fatal(err)
	}
	before, err := json.Marshal(r)
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range r.Log.Tail {
		change(&r.Log.Tail[i])
	}
	after, err := json.Marshal(r)
	if err != nil {
		w.t.Fatal(err)
	}
	write := store.Update(path, docs[0].Version, docs[0].Fields, after)
	if _, err := w.App.Store.Commit(w.t.Context(), write); err != nil {
		w.t.Fatal(err)
	}
	return !slices.Equal(before, after)
}
