package loop_test

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
)

// granted is a turn that proposes a plan with a grant of two issues.
const granted = `call propose_plan {"tasks":[{"title":"Open issues","goal":"They are open.","tools":["issue"],` +
	`"effects":["issue"]}],"grants":[{"tool":"issue","target":{"owner":"acme","repo":"web"},"maxCalls":2}]}`

// proposed returns a session with a waiting plan, and its approval.
func proposed(t *testing.T, w *env) (*run.View, run.Approval) {
	t.Helper()
	addArchitect(w)
	w.model.Then(turn(t, granted))
	req, in := w.session("open issues", 48*time.Hour)
	v, err := w.loop.Start(context.Background(), req, in)
	if err != nil {
		t.Fatal(err)
	}
	return v, w.approval(run.ApprovalID(v.RunID, 1))
}

// TestPlanSwapped puts another plan in the place of the waiting one, with its hash or without. Neither is confirmed,
// and the model's plan gets a new approval.
func TestPlanSwapped(t *testing.T) {
	ctx := context.Background()
	for name, hashed := range map[string]bool{"the plan": false, "the plan and its hash": true} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			v, ap := proposed(t, w)
			edit(t, w, document.ApprovalPath(ap.ID), func(other *run.Approval) {
				other.Args = bytes.Replace(other.Args, []byte(`"maxCalls":2`), []byte(`"maxCalls":9`), 1)
				if hashed {
					other.ArgsHash = run.ArgsHash("ana", plan.Proposing(plan.Bind{}).Spec, other.Place, other.Args)
				}
				ap = *other
			})
			_, err := w.loop.Resolve(ctx, approval.Resolution{UID: "ana", ApprovalID: ap.ID,
				Decision: run.ApproveOnce, ArgsHash: ap.ArgsHash})
			if !fault.Is(err, fault.Policy, fault.CodeIntegrity) {
				t.Fatal(err)
			}
			fresh := w.approval(run.ApprovalID(v.RunID, 2))
			if fresh.Status != run.ApprovalOpen || !strings.Contains(string(fresh.Args), `"maxCalls":2`) {
				t.Fatalf("what waits now is %+v", fresh)
			}
			if _, err := w.loop.Resolve(ctx, approval.Resolution{UID: "ana", ApprovalID: fresh.ID,
				Decision: run.ApproveOnce, ArgsHash: fresh.ArgsHash}); err != nil {
				t.Fatal(err)
			}
			now, _, err := w.loop.Get(ctx, "ana", v.RunID)
			if s := now.PlanState().Plan; err != nil || s.Status() != plan.StatusExecuting ||
				s.Grants()[0].MaxCalls != 2 {
				t.Errorf("%v, %s with %+v", err, s.Status(), s.Grants())
			}
		})
	}
}

// TestPlanConfirmationRace confirms, rejects and refines one plan in twenty processes at once. One of the decisions
// counts. All others are refused or find that the decision was made. One task has begun, or none.
func TestPlanConfirmationRace(t *testing.T) { onEachStore(t, oneConfirmation) }

func oneConfirmation(t *testing.T, open func(testing.TB) *env) {
	w := open(t)
	v, ap := proposed(t, w)
	decisions := []run.Decision{run.ApproveOnce, run.Reject, run.Refine, run.ApproveOnce}
	var all sync.WaitGroup
	errs := make([]error, 20)
	for i := range errs {
		all.Go(func() {
			_, errs[i] = w.process().Resolve(context.Background(), approval.Resolution{UID: "ana", ApprovalID: ap.ID,
				Decision: decisions[i%len(decisions)], ArgsHash: ap.ArgsHash, Comment: "another"})
		})
	}
	all.Wait()
	_, events, err := w.loop.Get(context.Background(), "ana", v.RunID)
	if err != nil {
		t.Fatal(err)
	}
	var made run.Decision
	count := map[run.EventType]int{}
	for _, e := range events {
		count[e.Type]++
		if e.Decided != nil {
			made = e.Decided.Decision
		}
	}
	for i, err := range errs {
		same := decisions[i%len(decisions)] == made
		late := fault.Is(err, fault.Policy, fault.CodeAlreadyResolved) || // or there will be another plan
			made == run.Refine && fault.Is(err, fault.Policy, fault.CodeStaleView)
		if same && err != nil || !same && !late {
			t.Errorf("%s was answered %v, where %s counts", decisions[i%len(decisions)], err, made)
		}
	}
	yes := 0
	if made == run.ApproveOnce {
		yes = 1
	}
	if count[run.ActionDecided] != 1 || count[run.PlanConfirmed] != yes || count[run.TaskStarted] != yes ||
		count[run.PlanClosed] != 1-yes {
		t.Errorf("%s counts, and the record has %v", made, count)
	}
}

// TestGrantInAudit checks that the audit names the grant, plan and approval of an effect that needed no approval of its
// own.
func TestGrantInAudit(t *testing.T) {
	w := newEnv(t)
	v, ap := proposed(t, w)
	ctx := context.Background()
	if _, err := w.loop.Resolve(ctx, approval.Resolution{UID: "ana", ApprovalID: ap.ID, Decision: run.ApproveOnce,
		ArgsHash: ap.ArgsHash}); err != nil {
		t.Fatal(err)
	}
	w.model.Then(turn(t, `call issue {"owner":"acme","repo":"web","title":"one","reasoning":"It is wanted."}`),
		turn(t, `call reflect {"is_task_complete":true,"reflection":"It is open."}`))
	deliver(t, w)
	docs, err := w.store.Get(ctx, document.RunPath(v.RunID))
	if err != nil {
		t.Fatal(err)
	}
	var r run.Run
	if err := document.Decode(docs[0], &r); err != nil {
		t.Fatal(err)
	}
	found := false
	for seq := int64(1); seq <= r.Audit.Seq; seq++ {
		docs, err := w.store.Get(ctx, document.AuditPath(v.RunID, seq))
		if err != nil {
			t.Fatal(err)
		}
		var e audit.Entry
		if err := document.Decode(docs[0], &e); err != nil {
			t.Fatal(err)
		}
		if e.Kind != audit.Intent {
			continue
		}
		found = true
		if e.Rule != "plan_grant" || e.Facts["grant"] != "g1" || e.Facts["approval"] != ap.ID ||
			e.Facts["plan"] != audit.InputHash(r.Nonce, ap.ArgsHash) {
			t.Errorf("the intent is on record as %+v", e)
		}
	}
	if !found {
		t.Error("the intent is not on record")
	}
}

// TestGrantWithdrawnBeforeIntent withdraws a grant between the model's call and its intent, with both orders of the two
// commits. The first one counts.
func TestGrantWithdrawnBeforeIntent(t *testing.T) {
	w := newEnv(t)
	v, ap := proposed(t, w)
	ctx := context.Background()
	if _, err := w.loop.Resolve(ctx, approval.Resolution{UID: "ana", ApprovalID: ap.ID, Decision: run.ApproveOnce,
		ArgsHash: ap.ArgsHash}); err != nil {
		t.Fatal(err)
	}
	asked := turn(t, `call issue {"owner":"acme","repo":"web","title":"one","reasoning":"It is wanted."}`)
	asked.Hook = func(ctx context.Context, _ model.Request) {
		if err := (loop.Grants{Loop: w.process()}).Revoke(ctx, "ana", v.RunID, "g1"); err != nil {
			t.Error(err)
		}
	}
	w.model.Then(asked)
	deliver(t, w)
	if waiting := w.open("ana"); len(w.effects) != 0 || len(waiting) != 1 || waiting[0].Tool != "issue" {
		t.Errorf("after the grant was taken back there are the effects %q, and %v waits", w.effects, waiting)
	}
	if p := w.sessionOf(ctx, v.RunID); p.Status() != plan.StatusExecuting {
		t.Errorf("the session is %s", p.Status())
	}
}

// TestGrantRevokedBetweenCalls withdraws a grant during the first of two calls that it allowed when they were planned.
// The second call has its intent after that, and needs an approval.
func TestGrantRevokedBetweenCalls(t *testing.T) {
	w := newEnv(t)
	v, ap := proposed(t, w)
	ctx := context.Background()
	def := w.issueDef("issue")
	carryOut := def.Execute
	def.Execute = func(ctx context.Context, c tool.Call, in issueArgs) (sendResult, error) {
		if err := (loop.Grants{Loop: w.process()}).Revoke(ctx, "ana", v.RunID, "g1"); err != nil {
			t.Error(err)
		}
		return carryOut(ctx, c, in)
	}
	w.loop.Tools["issue"] = tool.Define(def)
	if _, err := w.loop.Resolve(ctx, approval.Resolution{UID: "ana", ApprovalID: ap.ID, Decision: run.ApproveOnce,
		ArgsHash: ap.ArgsHash}); err != nil {
		t.Fatal(err)
	}
	w.model.Then(turn(t, `call issue {"owner":"acme","repo":"web","title":"one","reasoning":"It is wanted."}; `+
		`issue {"owner":"acme","repo":"web","title":"two","reasoning":"So is this."}`))
	deliver(t, w)
	if waiting := w.open("ana"); len(w.effects) != 1 || len(waiting) != 1 || waiting[0].Tool != "issue" ||
		!strings.Contains(waiting[0].Preview.Title, "two") {
		t.Errorf("after the grant was taken back there are the effects %q, and %v waits", w.effects, waiting)
	}
}
