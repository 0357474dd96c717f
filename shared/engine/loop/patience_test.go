package loop_test

import (
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

var noQuota = script.Turn{Err: fault.New(fault.Model, model.CodeQuota, "Used up.")}

// patient starts a run in a program whose runs wait for the model for up to an hour.
func (w *env) patient(t *testing.T, turns ...script.Turn) *run.View {
	t.Helper()
	if w.patience == 0 {
		w.patience = time.Hour
		w.loop = w.process()
	}
	w.model.Then(turns...)
	v := start(t, w, "Write to Bo.")
	return v
}

// TestPatienceWithModel checks that a run whose model has no capacity waits without a process, says until when, and
// continues by itself: before its first answer, and between two answers, whose effect is not repeated.
func TestPatienceWithModel(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		w := open(t)
		begin := w.clock()
		id := w.patient(t, noQuota, noQuota).RunID
		v, r := w.see(t, id)
		if wait := v.ResumesAt.Sub(begin); v.Status != run.Planning || wait < 15*time.Second || wait > time.Minute ||
			r.Lease.Owner != "" || !strings.Contains(v.Summary, "will try again") {
			t.Fatalf("%s until %s after %s, held by %q: %s", v.Status, v.ResumesAt, begin, r.Lease.Owner, v.Summary)
		}
		if _, err := w.loop.Advance(t.Context(), id, nil); err != nil || w.model.Left() != 1 {
			t.Fatalf("a resume that is early: %v; %d answers are left", err, w.model.Left())
		}
		w.tick(time.Minute)
		if due := w.sweepsAnew(t); due != 1 || w.model.Left() != 0 {
			t.Fatalf("%d runs are due, %d answers are left", due, w.model.Left())
		}
		if v, _ = w.see(t, id); v.Status != run.Planning || !v.ResumesAt.After(w.clock()) {
			t.Fatalf("%s until %s", v.Status, v.ResumesAt)
		}
		w.model.Then(callOf("lookup"), noQuota)
		w.tick(2 * time.Minute)
		w.sweepsAnew(t)
		if v, _ = w.see(t, id); len(v.Actions) != 1 || v.Actions[0].Status != run.ActionCompleted ||
			v.ResumesAt.IsZero() {
			t.Fatalf("%s with %d actions", v.Status, len(v.Actions))
		}
		w.model.Then(script.Turn{Text: "Done."})
		w.tick(time.Minute)
		w.sweepsAnew(t)
		v, _ = w.see(t, id)
		if v.Status != run.Completed || len(v.Actions) != 1 || !v.ResumesAt.IsZero() {
			t.Errorf("%s with %d actions, until %s", v.Status, len(v.Actions), v.ResumesAt)
		}
	})
}

// TestPatienceAtItsEnd checks when a run fails instead of waiting, and that it does all that it promised before.
func TestPatienceAtItsEnd(t *testing.T) {
	quota := fault.New(fault.Model, model.CodeQuota, "Used up.")
	for name, c := range map[string]struct {
		err   error
		waits bool
	}{
		"overloaded":             {overload.Err, false},
		"overloaded, for a time": {fault.New(fault.Model, model.CodeOverloaded, "Busy.").After(20 * time.Second), true},
		"the quota of a minute":  {quota.After(50 * time.Second), true},
		"the quota of the day":   {quota.After(5 * time.Hour), false},
		"refused":                {fault.New(fault.Model, model.CodeRefused, "No."), false},
		"a mistake of a program": {fault.New(fault.Tool, model.CodeOverloaded, "No."), false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			v := w.patient(t, script.Turn{Err: c.err})
			if v.ResumesAt.IsZero() == c.waits || (v.Status == run.Failed) == c.waits {
				t.Errorf("%s until %s: %s", v.Status, v.ResumesAt, v.Message)
			}
			if asked := fault.As(c.err).RetryAfter; c.waits && v.ResumesAt.Before(w.clock().Add(asked)) {
				t.Errorf("it asks again at %s, before the %s that the service asked for", v.ResumesAt, asked)
			}
		})
	}
}

// TestPatienceLimit asks a model that never has capacity: the run fails after an hour, with the model's error.
func TestPatienceLimit(t *testing.T) {
	w := newEnv(t)
	begin := w.clock()
	v := w.patient(t, noQuota)
	for asked := 1; v.Status == run.Planning; asked++ {
		if asked > 20 {
			t.Fatalf("asked %d times until %s", asked, w.clock().Sub(begin))
		}
		w.model.Then(noQuota)
		w.tick(v.ResumesAt.Sub(w.clock()) + time.Second)
		w.sweepsAnew(t)
		v, _ = w.see(t, v.RunID)
	}
	took := w.clock().Sub(begin)
	if v.ErrorReason != model.CodeQuota || took < 40*time.Minute || took > time.Hour {
		t.Errorf("after %s the run is %s: %s", took, v.Status, v.Message)
	}
}

// TestPatienceCancelled cancels a run that waits for its model, and lets another reach its deadline.
func TestPatienceCancelled(t *testing.T) {
	w := newEnv(t)
	id := w.patient(t, noQuota).RunID
	if _, err := w.loop.Cancel(t.Context(), "ana", id); err != nil {
		t.Fatal(err)
	}
	if v, _ := w.see(t, id); v.Status != run.Failed || v.ErrorReason != run.CodeCancelled || !v.ResumesAt.IsZero() {
		t.Errorf("after a cancel it is %s: %s", v.Status, v.ErrorReason)
	}
	wait := script.Turn{Err: fault.New(fault.Model, model.CodeQuota, "Used up.").After(30 * time.Minute)}
	if v := w.patient(t, wait); v.ResumesAt.IsZero() {
		t.Errorf("a wait of half an hour: %s, %s", v.Status, v.Message)
	}
	w.loop.Agents[run.Assistant].Limits.Deadline = 20 * time.Minute
	w.model.Then(wait)
	v, err := w.loop.Start(t.Context(), loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "Write to Bo."})
	if err != nil || v.Status != run.Failed {
		t.Errorf("a wait beyond the deadline: %s until %s, %v", v.Status, v.ResumesAt, err)
	}
}

// TestPatienceAfterText checks that a run does not ask again for an answer whose beginning was shown.
func TestPatienceAfterText(t *testing.T) {
	for _, unread := range []bool{false, true} {
		w := newEnv(t)
		w.loop.ModelPatience, w.loop.Model = time.Hour, &halting{err: noQuota.Err}
		start := loop.StartRequest{UID: "ana"}
		if !unread {
			start.Sink = func(unit.Update) {}
		}
		v, err := w.loop.Start(t.Context(), start, loop.Prompt{Text: "Hi."})
		if err != nil || v.ResumesAt.IsZero() == unread {
			t.Errorf("unread %t: %s until %s, %v", unread, v.Status, v.ResumesAt, err)
		}
	}
}

// TestPatienceOfManyRuns checks that runs which found no capacity at the same time are not due at the same time.
func TestPatienceOfManyRuns(t *testing.T) {
	w := newEnv(t)
	times := map[time.Time]bool{}
	for range 20 {
		times[w.patient(t, noQuota).ResumesAt] = true
	}
	if len(times) < 15 {
		t.Errorf("20 runs are due at %d times", len(times))
	}
}
