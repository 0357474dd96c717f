package loop_test

import (
	"context"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// TestApprovalInsteadOfEarlierCard commits a yes and the rejection of an earlier run's card together, on each store.
func TestApprovalInsteadOfEarlierCard(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		c := &chatting{env: open(t), t: t}
		first := c.proposes("bob@x.org")
		second := c.say("at eleven", script.Turn{Calls: []script.Call{{Name: "send",
			Args: map[string]any{"to": []string{"bob@x.org"}, "text": "eleven"}}}})
		earlier := run.ApprovalID(first.RunID, 1)
		yes := approval.Resolution{UID: "ana", ApprovalID: run.ApprovalID(second.RunID, 1), Decision: run.ApproveOnce,
			Rejects: []string{earlier}}
		c.model.Then(script.Turn{Text: "Sent."}, script.Turn{Text: "Not sent."})
		for range 2 { // a client may send it twice
			if _, err := c.loop.Resolve(context.Background(), yes); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.deliver(context.Background()); err != nil {
			t.Fatal(err)
		}
		if a := c.now(first); a.Status != run.ActionRejected || a.ReplacedBy != yes.ApprovalID {
			t.Errorf("the earlier card: %+v", a)
		}
		if a := c.now(second); a.Status != run.ActionCompleted {
			t.Errorf("its correction: %+v", a)
		}
		if len(c.effects) != 1 {
			t.Errorf("done is %v", c.effects)
		}
	})
}
