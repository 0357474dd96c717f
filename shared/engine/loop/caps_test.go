package loop_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
)

// withClerk adds a second agent that asks for approvals, and sets the limits of both agents.
func (w *env) withClerk(open, day int) {
	w.loop.Agents["clerk"] = testAgent("clerk", "You are a clerk.")
	for _, a := range w.loop.Agents {
		a.Limits.MaxOpen, a.Limits.MaxPerDay = open, day
	}
	w.loop.Model = &asked{tool: "send"}
}

func (w *env) askAgent(agent string) (*run.View, error) {
	return w.loop.Start(context.Background(), loop.StartRequest{UID: "ana", Agent: agent},
		loop.Prompt{Text: "tell bob"})
}

// capped reports whether the agent is refused because its user has too many approvals.
func (w *env) capped(agent string) bool {
	w.t.Helper()
	v, err := w.askAgent(agent)
	if err == nil && v.Status == run.Awaiting {
		return false
	}
	if !fault.Is(err, fault.Policy, fault.CodeTooMany) {
		w.t.Fatalf("%s: %v %+v; want error %v %v", agent, err, v, fault.Policy, fault.CodeTooMany)
	}
	return true
}

func (w *env) user() *run.User {
	w.t.Helper()
	u, err := w.rec.User(context.Background(), "ana")
	if err != nil {
		w.t.Fatal(err)
	}
	return &u
}

// TestCapsOfEachAgent begins many runs of two agents at once. Each agent gets exactly as many open approvals as its
// limit. A decision for one agent frees nothing for the other.
func TestCapsOfEachAgent(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		ctx, w := context.Background(), open(t)
		w.withClerk(3, 0)
		var starting sync.WaitGroup
		for range 6 {
			for name := range w.loop.Agents {
				starting.Go(func() {
					if _, err := w.askAgent(name); err != nil && !fault.Is(err, fault.Policy, fault.CodeTooMany) {
						t.Errorf("%s: %v", name, err)
					}
				})
			}
		}
		starting.Wait()
		u := w.user()
		for name := range w.loop.Agents {
			if n := u.CountOf(name).Open; n != 3 || !w.capped(name) {
				t.Errorf("%d approvals of %s are open", n, name)
			}
		}
		for _, a := range w.open("ana") {
			v, _, err := w.loop.Get(ctx, "ana", a.RunID)
			if err != nil {
				t.Fatal(err)
			}
			if v.Agent != "clerk" {
				continue
			}
			if _, err := w.loop.Resolve(ctx,
				approval.Resolution{UID: "ana", ApprovalID: a.ApprovalID, Decision: run.Reject}); err != nil {
				t.Fatal(err)
			}
			break
		}
		if w.capped("clerk") || !w.capped("clerk") || !w.capped(run.Assistant) {
			t.Errorf("one answer to the clerk is to free one of the clerk's: %+v", w.user())
		}
	})
}

// TestCapsOfADay checks that each agent asks as often in a day as its limit permits, answered or not, and that no count
// of a past day is kept.
func TestCapsOfADay(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		w := open(t)
		w.withClerk(0, 2)
		for name := range w.loop.Agents {
			for range 2 {
				v, err := w.askAgent(name)
				if err != nil {
					t.Fatal(err)
				}
				if _, err := w.loop.Cancel(t.Context(), "ana", v.RunID); err != nil {
					t.Fatal(err)
				}
			}
			if !w.capped(name) {
				t.Errorf("%s asked three times", name)
			}
		}
		if u := w.user(); u.OpenApprovals() != 0 || u.CountOf("clerk").Asked != 2 {
			t.Errorf("at the end of the day: %+v", u)
		}
		w.tick(24 * time.Hour)
		if w.capped(run.Assistant) {
			t.Error("another day is the same")
		}
		if u := w.user(); len(u.Others) != 0 {
			t.Errorf("yesterday's counts are kept: %+v", u.Others)
		}
	})
}

// TestCapsOfAReleaseBefore checks that approvals that were counted for all agents together count for the assistant
// until they are decided, whatever agent asked for them.
func TestCapsOfAReleaseBefore(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		w := open(t)
		w.withClerk(1, 0)
		v, err := w.askAgent("clerk")
		if err != nil {
			t.Fatal(err)
		}
		w.editJSON(document.ApprovalPath(run.ApprovalID(v.RunID, 1)), func(doc map[string]any) { delete(doc, "agent") })
		w.editJSON(document.UserPath("ana"), func(doc map[string]any) {
			delete(doc, "agents")
			doc["open"], doc["asked"], doc["day"] = 1, 1, w.clock().UTC().Format(time.DateOnly)
		})
		if !w.capped(run.Assistant) || w.capped("clerk") || !w.capped("clerk") {
			t.Errorf("the old count: %+v", w.user())
		}
		approve(t, w, v, 1)
		if w.capped(run.Assistant) || !w.capped("clerk") {
			t.Errorf("after the old approval was answered: %+v", w.user())
		}
	})
}

// TestCapsAfterDeletion checks that the approvals of an agent are subtracted from that agent's count when a run that no
// process can move is deleted with them.
func TestCapsAfterDeletion(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		ctx, w := context.Background(), open(t)
		w.withClerk(1, 0)
		v, err := w.askAgent("clerk")
		if err != nil || w.capped(run.Assistant) {
			t.Fatalf("%v %+v", err, w.user())
		}
		w.setAside(v.RunID, `{"id":5}`)
		if gone, err := w.rec.DeleteThread(ctx, "ana", v.ThreadID); err != nil || !gone {
			t.Fatalf("%t %v", gone, err)
		}
		if !w.capped(run.Assistant) || w.capped("clerk") {
			t.Errorf("after the deletion: %+v", w.user())
		}
	})
}

// editJSON changes the JSON of a document, as another release would have written it.
func (w *env) editJSON(path string, edit func(map[string]any)) {
	w.t.Helper()
	docs, err := w.store.Get(context.Background(), path)
	if err != nil {
		w.t.Fatal(err)
	}
	d, data := docs[0], map[string]any{}
	if err := json.NewDecoder(strings.NewReader(string(d.Data))).Decode(&data); err != nil {
		w.t.Fatal(err)
	}
	edit(data)
	b, err := json.Marshal(data)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.store.Commit(context.Background(), store.Update(path, d.Version, d.Fields, b)); err != nil {
		w.t.Fatal(err)
	}
}
