package loop_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/store/document"
)

// TestHintsInResumes resumes an approved run by messages with hints that are right, absent, wrong
// or hostile. Each message advances the run for its own user and in its own thread, and changes no other user's
// documents.
func TestHintsInResumes(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		for name, c := range map[string]struct {
			hints func(own, another queue.Message) queue.Message
			reads int
		}{
			"right":              {func(own, _ queue.Message) queue.Message { return own }, 1},
			"of another agent":   {func(own, _ queue.Message) queue.Message { own.Agent = "nobody"; return own }, 1},
			"another user's":     {func(_, another queue.Message) queue.Message { return another }, 2},
			"another thread":     {func(m, o queue.Message) queue.Message { m.ThreadID = o.ThreadID; return m }, 2},
			"another user":       {func(own, o queue.Message) queue.Message { own.UID = o.UID; return own }, 2},
			"the user alone":     {func(own, _ queue.Message) queue.Message { own.ThreadID = ""; return own }, 2},
			"none":               {always(queue.Message{}), 2},
			"of nobody":          {always(queue.Message{UID: "x", ThreadID: "x"}), 2},
			"that are no names":  {always(queue.Message{UID: "\x00", ThreadID: ".."}), 2},
			"that are paths":     {always(queue.Message{UID: "a/b/c", ThreadID: "/"}), 2},
			"that are too long":  {always(queue.Message{UID: strings.Repeat("a", 100_000)}), 2},
			"that are not UTF-8": {always(queue.Message{UID: "\xff"}), 2},
		} {
			t.Run(name, func(t *testing.T) {
				p := measured(open(t))
				p.uid = "eve"
				theirs := p.must("send", "")
				if err := p.decide(theirs, run.ApproveOnce); err != nil {
					t.Fatal(err)
				}
				another := p.asked[theirs.RunID]
				p.uid = "ana"
				v := p.must("send", "")
				if err := p.decide(v, run.ApproveOnce); err != nil {
					t.Fatal(err)
				}
				before := p.versions(theirs)
				m := c.hints(p.asked[v.RunID], another)
				m.RunID = v.RunID
				p.take()
				got, err := p.loop.Resume(t.Context(), m, nil)
				if err != nil || got.Status != run.Completed || len(p.effects) != 1 {
					t.Fatalf("%+v %v, effects %v", got, err, p.effects)
				}
				if cost, _, _ := p.take(); cost.reads != c.reads || cost.commits != 3 {
					t.Errorf("%d reads and %d commits, want %d and 3", cost.reads, cost.commits, c.reads)
				}
				if after := p.versions(theirs); after != before {
					t.Errorf("another user's documents are %s, were %s", after, before)
				}
			})
		}
	})
}

func always(hints queue.Message) func(own, another queue.Message) queue.Message {
	return func(_, _ queue.Message) queue.Message { return hints }
}

// versions returns the versions of eve's documents.
func (p *proof) versions(v *run.View) string {
	p.t.Helper()
	docs, err := p.store.Get(p.t.Context(), document.UserPath("eve"), document.ThreadPath(v.ThreadID),
		document.RunPath(v.RunID))
	if err != nil {
		p.t.Fatal(err)
	}
	return fmt.Sprint(docs[0].Version, docs[1].Version, docs[2].Version)
}

// TestHintsOfDisabledUser approves a run, disables its user, and resumes the run with another user's hints.
func TestHintsOfDisabledUser(t *testing.T) {
	p := measured(newEnv(t))
	p.uid = "eve"
	p.must("", "")
	p.uid = "ana"
	v := p.must("send", "")
	if err := p.decide(v, run.ApproveOnce); err != nil {
		t.Fatal(err)
	}
	if _, err := p.rec.SetDisabled(t.Context(), "ana", true); err != nil {
		t.Fatal(err)
	}
	m := p.asked[v.RunID]
	m.UID = "eve"
	if _, err := p.loop.Resume(t.Context(), m, nil); err != nil || len(p.effects) != 0 {
		t.Fatalf("%v, effects %v", err, p.effects)
	}
}
