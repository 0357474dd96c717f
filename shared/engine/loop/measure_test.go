package loop_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/telemetry/metrics"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// measured makes the env's loop measure.
func (w *env) measured() *metrics.Metrics {
	w.loop.Metrics = metrics.New(w.clock)
	return w.loop.Metrics
}

// points returns the points of a batch: the end of the name, the values of its attributes, and the sum or the value
// without fractions. For a histogram it also returns the number of measurements.
func points(m *metrics.Metrics) string {
	var lines []string
	for _, p := range m.Batch(true).Points {
		line := strings.TrimPrefix(strings.TrimPrefix(p.Of.Name, "countersign."), "gen_ai.client.")
		for _, a := range p.Attrs {
			if a.Value != "" {
				line += " " + a.Value
			}
		}
		if line += fmt.Sprintf(": %.0f", p.Value); p.Of.Kind == metrics.Histogram {
			line += fmt.Sprintf(" in %d", p.Count)
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// asks begins a run that calls for a send, and returns the approval that it waits for.
func (w *env) asks(t *testing.T, key string) run.ApprovalView {
	t.Helper()
	w.model.Restart(script.Turn{Calls: []script.Call{{Name: "send",
		Args: map[string]any{"to": []string{"bob@x.org"}, "text": key}}},
		Usage: model.Usage{Prompt: 100, Output: 20, Thoughts: 7, Total: 127}}, script.Turn{Text: "Done."})
	v, err := w.loop.Start(t.Context(), loop.StartRequest{UID: "ana", Key: key, BodyHash: key}, loop.Prompt{Text: key})
	if err != nil || len(v.Waiting) != 1 {
		t.Fatal(v, err)
	}
	return v.Waiting[0]
}

func (w *env) decides(t *testing.T, a run.ApprovalView, d run.Decision) {
	t.Helper()
	if _, err := w.loop.Resolve(t.Context(), approval.Resolution{UID: "ana", ApprovalID: a.ApprovalID,
		Decision: d}); err != nil {
		t.Fatal(err)
	}
	deliver(t, w)
}

func (w *env) sweeps(t *testing.T) {
	t.Helper()
	if _, err := w.loop.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	deliver(t, w)
}

// holds compares the measurements since the last comparison.
func holds(t *testing.T, m *metrics.Metrics, want string) {
	t.Helper()
	if got := points(m); got != want {
		t.Errorf("measured:\n%s\nand not\n%s", got, want)
	}
}

const (
	wasAsked = `approval.requested send approval: 1
operation.duration chat gcp.gen_ai script: 0 in 1
run.started assistant: 1
token.usage script assistant input: 100 in 1
token.usage script assistant output: 27 in 1`
	nothingWaits = `approval.oldest approval: 0
approval.oldest plan: 0
approval.oldest review: 0
approval.waiting approval: 0
approval.waiting plan: 0
approval.waiting review: 0`
)

// TestMeasured checks the measurements of runs that are approved, rejected and left, and of a sweep.
func TestMeasured(t *testing.T) {
	w := newEnv(t)
	m := w.measured()
	w.sweeps(t)
	holds(t, m, nothingWaits)

	a := w.asks(t, "one")
	holds(t, m, wasAsked)
	w.tick(90 * time.Second)
	w.next = []string{"transient", "ok"}
	w.decides(t, a, run.ApproveOnce)
	holds(t, m, "approval.duration send approval approve_once: 90 in 1\n"+
		"operation.duration chat gcp.gen_ai script: 0 in 1\nretry tool: 1\n"+
		"run.duration assistant completed: 90 in 1\ntool.duration send: 0 in 1")

	a = w.asks(t, "two")
	holds(t, m, wasAsked)
	w.tick(10 * time.Second)
	w.decides(t, a, run.Reject)
	holds(t, m, "approval.duration send approval reject: 10 in 1\nrun.duration assistant completed: 10 in 1")

	a = w.asks(t, "three")
	holds(t, m, wasAsked)
	w.next, w.settle = []string{"lost"}, []string{"unknown"}
	w.decides(t, a, run.ApproveOnce)
	holds(t, m, "approval.duration send approval approve_once: 0 in 1\napproval.requested send review: 1\n"+
		"tool.duration send ToolExecutionError.unknown_outcome: 0 in 1")

	w.asks(t, "four")
	holds(t, m, wasAsked)
	w.tick(10 * time.Minute)
	w.sweeps(t)
	holds(t, m, "approval.oldest approval: 600\napproval.oldest plan: 0\napproval.oldest review: 600\n"+
		"approval.waiting approval: 1\napproval.waiting plan: 0\napproval.waiting review: 1")
	w.sweeps(t) // the sweep does not read it again so soon
	holds(t, m, "")
	w.tick(24 * time.Hour)
	w.sweeps(t)
	holds(t, m, "approval.duration send approval expired: 87000 in 1\n"+
		"approval.oldest approval: 87000\napproval.oldest plan: 0\napproval.oldest review: 87000\n"+
		"approval.waiting approval: 1\napproval.waiting plan: 0\napproval.waiting review: 1\n"+
		"run.duration assistant failed PolicyError.expired: 87000 in 1\nsweep.found: 1")
}

// TestMetricsOfRetries counts a commit that a store does not accept at once, and a step whose process has died. The
// process dies while the next model call is under way.
func TestMetricsOfRetries(t *testing.T) { synctest.Test(t, retriesAreMeasured) }

func retriesAreMeasured(t *testing.T) {
	w := onMemory(t)
	m := w.measured()
	w.loop.Store = faulty.Wrap(w.store, faulty.Commits(faulty.Nth(2, faulty.Fail(store.ErrUnavailable))))
	a := w.asks(t, "one")
	holds(t, m, strings.Replace(wasAsked, "run.", "retry commit: 1\nrun.", 1))

	// the commit that would record the sent e-mail
	w.loop.Store = faulty.Wrap(w.store, faulty.Commits(faulty.Nth(3, faulty.Before(func(*faulty.Call) {
		synctest.Wait() // until the model call has begun
		panic(faulty.Killed{})
	}))))
	if died, err := mortally(func() error {
		w.decides(t, a, run.ApproveOnce)
		return nil
	}); !died || err != nil || len(w.effects) != 1 {
		t.Fatalf("died: %t, %v, and done: %v", died, err, w.effects)
	}
	holds(t, m, "approval.duration send approval approve_once: 0 in 1\nmodel.discarded: 1\n"+
		"operation.duration chat gcp.gen_ai script ModelError.cancelled: 0 in 1")
	w.loop.Store, w.settle = w.store, []string{"done"}
	w.tick(2 * time.Minute)
	w.sweeps(t)
	holds(t, m, nothingWaits+"\noperation.duration chat gcp.gen_ai script: 0 in 1\nretry step: 1\n"+
		"run.duration assistant completed: 120 in 1\nsweep.found: 1")
}

// TestMeasureWithoutMeter checks that the store gets no further requests without a meter. TestTraceWithoutTracer checks
// the allocations.
func TestMeasureWithoutMeter(t *testing.T) {
	w := newEnv(t)
	counted := faulty.Count(w.store)
	w.loop.Store = counted
	w.sweeps(t)
	if n := counted.Take().Query.Trips; n != document.Shards {
		t.Errorf("%d queries", n)
	}
	w.measured()
	w.sweeps(t)
	if n := counted.Take().Query.Trips; n != 2*document.Shards {
		t.Errorf("%d queries", n)
	}
}
