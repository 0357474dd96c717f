package loop_test

import (
	"context"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/store/document"
)

// TestQuarantineAfterRefusedDecision refuses a decision about a quarantined run that can be read again. The recorded
// decision does not advance the run, so it stays quarantined.
func TestQuarantineAfterRefusedDecision(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		ctx, w := context.Background(), open(t)
		w.loop.Model = &asked{tool: "send"}
		v, err := w.loop.Start(ctx, loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "tell bob"})
		if err != nil || v.Status != run.Awaiting {
			t.Fatalf("%v %+v; want v.Status %v", err, v, run.Awaiting)
		}
		w.rewrite(v.RunID, w.setAside(v.RunID, unreadable["no run"]))
		_, err = w.loop.Resolve(ctx, approval.Resolution{UID: "ana", ApprovalID: run.ApprovalID(v.RunID, 1),
			Decision: run.ConfirmDone})
		if !fault.Is(err, fault.Policy, fault.CodeNotApplicable) {
			t.Fatalf("%v; want error %v %v", err, fault.Policy, fault.CodeNotApplicable)
		}
		f := document.RunFieldsOf(w.document(v.RunID))
		if !f.Quarantined || f.Tries == 0 || !f.Due.Equal(document.Never) {
			t.Errorf("after a refused decision: %+v", f)
		}
	})
}
