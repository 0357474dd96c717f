package loop_test

import (
	"testing"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/loop"
)

// start starts a run of ana's with the prompt.
func start(t testing.TB, w *env, prompt string) *run.View {
	t.Helper()
	v, err := w.loop.Start(t.Context(), loop.StartRequest{UID: "ana"}, loop.Prompt{Text: prompt})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// approve approves the n-th card of ana's run once.
func approve(t testing.TB, w *env, v *run.View, n int) {
	t.Helper()
	decide(t, w, v, n, run.ApproveOnce)
}

// decide makes a decision of ana's about the n-th card of her run.
func decide(t testing.TB, w *env, v *run.View, n int, d run.Decision) {
	t.Helper()
	if _, err := w.loop.Resolve(t.Context(),
		approval.Resolution{UID: "ana", ApprovalID: run.ApprovalID(v.RunID, n), Decision: d}); err != nil {
		t.Fatal(err)
	}
}

// deliver delivers all messages of the queue.
func deliver(t testing.TB, w *env) {
	t.Helper()
	if err := w.deliver(t.Context()); err != nil {
		t.Fatal(err)
	}
}
