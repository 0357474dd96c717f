package planner_test

import (
	"context"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/planner"
	"github.com/countersign-run/countersign/shared/testkit/fields"
)

// giveUpOn is the model's reflection that the task cannot be done.
var giveUpOn = call("reflect", `{"is_task_complete":false,"failed":true,"reflection":"It cannot be done."}`)

func get(t *testing.T, p *planner.Planner, id string) *planner.Session {
	t.Helper()
	v, err := p.Get(context.Background(), "ana", id)
	if err != nil {
		t.Fatal(err)
	}
	return view(t, v)
}

// TestConfirmationRetried has the same plan proposed again after its task failed. Then a client repeats the first
// confirmation. The answer is the outcome of the first approval, and the second approval still waits.
func TestConfirmationRetried(t *testing.T) {
	p, move := newPlanner(t, call("propose_plan", proposal), giveUpOn, call("propose_plan", proposal), giveUpOn,
		call("propose_plan", proposal))
	ctx := context.Background()
	s := view(t, start(t, p, planner.StartOptions{}))
	byHash := planner.ExecuteOptions{UID: "ana", SessionID: s.SessionID, PlanHash: s.PlanHash}
	byCard := byHash
	byCard.ApprovalID = s.Approvals[0].ApprovalID
	confirm := func(what string, o planner.ExecuteOptions, want fault.Code) {
		t.Helper()
		_, err := p.Confirm(ctx, o)
		if got := fault.Code(""); err == nil && want != got || err != nil && fault.As(err).Code != want {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
	}
	confirm("the hash of the only card", byHash, "")
	confirm("the same yes again", byHash, "")
	move()
	again := get(t, p, s.SessionID)
	fields.Check(t, *again, planner.Session{Status: plan.StatusAwaiting, PlanHash: s.PlanHash, Revision: 2})
	confirm("the first yes, which names its card", byCard, "")
	confirm("the first yes, which names a hash", byHash, fault.CodeStaleView)
	if now := get(t, p, s.SessionID); now.Status != plan.StatusAwaiting {
		t.Fatalf("after the repeated confirmation: %s", now.Status)
	}
	confirm("the card of another session", planner.ExecuteOptions{UID: "ana", SessionID: s.SessionID,
		ApprovalID: strings.Repeat("a", 26) + "-1", PlanHash: s.PlanHash}, fault.CodeNotFound)
	byCard.ApprovalID = run.ApprovalID(s.SessionID, 2)
	confirm("the yes to the second card", byCard, "")
	if now := get(t, p, s.SessionID); now.Status != plan.StatusExecuting {
		t.Errorf("after the second confirmation: %s", now.Status)
	}
	confirm("a hash that both cards have shown, while none waits", byHash, "")
}

// TestConfirmationWithLaterStrict confirms a plan, and then again with the wish to be asked about every change. That is
// another decision, which comes too late.
func TestConfirmationWithLaterStrict(t *testing.T) {
	p, _ := newPlanner(t, call("propose_plan", proposal))
	s := view(t, start(t, p, planner.StartOptions{}))
	for i, c := range []struct {
		strict bool
		want   fault.Code
	}{{false, ""}, {true, fault.CodeAlreadyResolved}, {false, ""}} {
		o := planner.ExecuteOptions{UID: "ana", SessionID: s.SessionID, PlanHash: s.PlanHash, Strict: c.strict}
		_, err := p.Confirm(context.Background(), o)
		if c.want == "" && err != nil || c.want != "" && !fault.Is(err, fault.Policy, c.want) {
			t.Errorf("confirmation %d: %v, want %q", i, err, c.want)
		}
	}
}

// TestRefinementRetried has the same plan proposed again after the user has requested another plan.
func TestRefinementRetried(t *testing.T) {
	p, move := newPlanner(t, call("propose_plan", proposal), call("propose_plan", proposal))
	ctx := context.Background()
	s := view(t, start(t, p, planner.StartOptions{}))
	o := planner.RefineOptions{UID: "ana", SessionID: s.SessionID, PlanHash: s.PlanHash, RefinementPrompt: "smaller"}
	for range 2 {
		if _, err := p.RefinePlan(ctx, o); err != nil {
			t.Fatal(err)
		}
	}
	move()
	if _, err := p.RefinePlan(ctx, o); !fault.Is(err, fault.Policy, fault.CodeStaleView) {
		t.Errorf("with the hash: %v", err)
	}
	o.ApprovalID = run.ApprovalID(s.SessionID, 1)
	if _, err := p.RefinePlan(ctx, o); err != nil {
		t.Errorf("with the approval: %v", err)
	}
	now := get(t, p, s.SessionID)
	if now.Status != plan.StatusAwaiting || now.Revision != 2 {
		t.Errorf("after the repeated refinement: %s, revision %d", now.Status, now.Revision)
	}
	yes := planner.ExecuteOptions{UID: "ana", SessionID: s.SessionID, PlanHash: now.PlanHash}
	if _, err := p.Confirm(ctx, yes); !fault.Is(err, fault.Policy, fault.CodeStaleView) {
		t.Errorf("a yes by the hash, which the first card showed too: %v, want stale_view", err)
	}
	yes.ApprovalID = run.ApprovalID(s.SessionID, 1)
	if _, err := p.Confirm(ctx, yes); !fault.Is(err, fault.Policy, fault.CodeStaleView) {
		t.Errorf("a yes to the first card: %v, want stale_view", err)
	}
	yes.ApprovalID = run.ApprovalID(s.SessionID, 2)
	for _, what := range []string{"the yes to the second card", "the same yes again"} {
		if _, err := p.Confirm(ctx, yes); err != nil {
			t.Errorf("%s: %v, want no error", what, err)
		}
	}
	yes.ApprovalID = ""
	if _, err := p.Confirm(ctx, yes); err != nil {
		t.Errorf("the hash of the confirmed card: %v, want no error", err)
	}
}
