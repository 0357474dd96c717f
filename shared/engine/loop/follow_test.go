package loop_test

import (
	"context"
	"fmt"
	"math/rand"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/wait"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/memory"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

// inTime runs a test on its own clock. call is the limit of one call of a function.
func inTime(t *testing.T, call time.Duration, test func(t *testing.T, h *host), ask ...string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &env{t: t, ticks: time.Now}
		w.on(memory.New(time.Now), func(time.Duration) {})
		w.loop.Sleep, w.call = wait.For, call
		h := commands(t, w, asksFor(ask...)...)
		agent := w.loop.Agents[run.Terminal]
		agent.Limits = agent.Limits.Within(call)
		test(t, h)
		synctest.Wait()
	})
}

// approved starts a run and approves its first command.
func (h *host) approved(t *testing.T) *run.View {
	t.Helper()
	v := h.start(t)
	if err := h.decide(t, v, 1, run.ApproveOnce); err != nil {
		t.Fatal(err)
	}
	return v
}

// resumes is one call of the function, if one was requested.
func (h *host) resumes(t *testing.T) (asked bool, err error) {
	t.Helper()
	h.env.mu.Lock()
	if len(h.queue) == 0 {
		h.env.mu.Unlock()
		return false, nil
	}
	m := h.asked[h.queue[0]]
	h.queue = h.queue[1:]
	h.env.mu.Unlock()
	ctx, cancel := context.WithTimeout(t.Context(), h.call)
	defer cancel()
	_, err = h.loop.Resume(ctx, m, nil)
	return true, err
}

func (h *host) view(t *testing.T, v *run.View) *run.View {
	t.Helper()
	now, _, err := h.loop.Get(t.Context(), "ana", v.RunID)
	if err != nil {
		t.Fatal(err)
	}
	return now
}

// TestFollowThreeInvocations runs a command of six minutes with a limit of two and a half for each call of the
// function.
func TestFollowThreeInvocations(t *testing.T) {
	inTime(t, 150*time.Second, func(t *testing.T, h *host) {
		v, began, calls := h.approved(t), time.Now(), 0
		for {
			asked, err := h.resumes(t)
			if err != nil {
				t.Fatal(err)
			}
			if !asked {
				break
			}
			calls++
		}
		now := h.view(t, v)
		if a := now.Actions[0]; now.Status != run.Completed || a.Status != run.ActionCompleted || calls != 3 ||
			!slices.Equal(h.runs, []string{"sleep 360"}) {
			t.Errorf("after %d calls of the function the action is %+v, and %v were begun", calls, a, h.runs)
		}
		if took := time.Since(began); took < 6*time.Minute || took > 6*time.Minute+10*time.Second {
			t.Errorf("it took %s", took)
		}
		if now.ModelCalls != 2 {
			t.Errorf("the model was asked %d times", now.ModelCalls)
		}
	}, "sleep 360")
}

// TestFollowCommandAtItsLimit learns in a later invocation that the command was ended.
func TestFollowCommandAtItsLimit(t *testing.T) {
	inTime(t, time.Minute, func(t *testing.T, h *host) {
		v := h.approved(t)
		for asked := true; asked; {
			var err error
			if asked, err = h.resumes(t); err != nil {
				t.Fatal(err)
			}
		}
		now := h.view(t, v)
		if a := now.Actions[0]; a.Status != run.ActionFailed || a.ErrorReason != "timeout" ||
			a.ExecutionStatus != run.FailedKnown || now.Status != run.Completed {
			t.Errorf("the action is %+v, and the run %s", a, now.Status)
		}
	}, "sleep 100")
}

// TestCancelDuringCommand cancels a run whose command is in progress or about to begin. One second later nothing runs,
// and nothing begins after that, whether its process is alive or dead.
func TestCancelDuringCommand(t *testing.T) {
	for _, dies := range []string{"", "lost", "before", "after"} {
		t.Run("dies "+dies, func(t *testing.T) {
			inTime(t, 5*time.Minute, func(t *testing.T, h *host) {
				v := h.approved(t)
				h.becomes(dies, false)
				moved := make(chan error, 1)
				go func() {
					defer close(moved)
					_, err := h.resumes(t)
					moved <- err
				}()
				time.Sleep(5 * time.Second)
				h.becomes("", false)
				if _, err := h.loop.Cancel(t.Context(), "ana", v.RunID); err != nil {
					t.Fatal(err)
				}
				// the message: the process that carries the command out reads the cancellation in the run's document
				if dies == "lost" {
					h.env.mu.Lock()
					h.queue = nil
					h.env.mu.Unlock()
				}
				if _, err := h.resumes(t); err != nil && !unit.Held(err) {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				if h.running() {
					t.Error("a command runs after the stop")
				}
				<-moved
				time.Sleep(2 * time.Minute) // a dead process's lease
				if err := h.sweepAll(); err != nil {
					t.Fatal(err)
				}
				now := h.view(t, v)
				a := now.Actions[0]
				if now.Status != run.Completed && now.Status != run.Failed {
					t.Fatalf("the run is %s, and the action %+v", now.Status, a)
				}
				switch {
				case dies == "before" && (a.Status != run.ActionFailed || a.ErrorReason != run.CodeCancelled ||
					a.ExecutionStatus != run.FailedKnown || len(h.runs) > 0):
					t.Errorf("what was never begun is %+v, ran %v", a, h.runs)
				case dies != "before" && (a.Status != run.ActionCompleted || len(h.runs) != 1):
					t.Errorf("what was stopped is %+v, ran %v", a, h.runs)
				}
				if _, err := h.begin(a.ActionID, 0); err == nil {
					t.Error("a process that wakes late begins it")
				}
				if open := h.open("ana"); len(open) > 0 {
					t.Errorf("a review is left: %+v", open)
				}
			}, "sleep 600")
		})
	}
}

// TestCancelInterruptLost loses the interrupt for a command that was never started. The next request for its outcome
// says that the run is over, so the command never begins, and its user has nothing to settle.
func TestCancelInterruptLost(t *testing.T) {
	inTime(t, 5*time.Minute, func(t *testing.T, h *host) {
		v := h.approved(t)
		h.becomes("before", false)
		dead := make(chan bool)
		go func() {
			defer close(dead)
			_, _ = h.resumes(t)
		}()
		<-dead
		h.becomes("", false)
		h.deaf = true
		if _, err := h.loop.Cancel(t.Context(), "ana", v.RunID); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute) // the dead process's lease
		if err := h.sweepAll(); err != nil {
			t.Fatal(err)
		}
		now := h.view(t, v)
		if a := now.Actions[0]; now.Status != run.Completed && now.Status != run.Failed ||
			a.Status != run.ActionFailed || a.ErrorReason != run.CodeCancelled || a.ExecutionStatus != run.FailedKnown {
			t.Errorf("the run is %s, and what was never begun is %+v", now.Status, a)
		}
		if _, err := h.begin(now.Actions[0].ActionID, 0); err == nil {
			t.Error("a process that wakes late begins it")
		}
		if open := h.open("ana"); len(open) > 0 {
			t.Errorf("a review is left: %+v", open)
		}
	}, "sleep 600")
}

// TestCancelBeforeRetry stops a process before it begins a command, and gives up the retry in each possible
// way. The process may wake at any time, so the command is forbidden before its outcome is recorded. The outcome is
// "not done", which stays true, and its user has nothing to settle. An unreachable host gets another request later.
func TestCancelBeforeRetry(t *testing.T) {
	for name, c := range map[string]struct {
		gives  func(t *testing.T, h *host)
		reason fault.Code
	}{
		"denied by now": {func(_ *testing.T, h *host) { h.loop.Rules = policy.Rules{DenySideEffects: true} },
			"denied"},
		"elsewhere by now": {func(t *testing.T, h *host) { h.set(t, terminalDoc{Dir: "/tmp"}) },
			fault.CodeStaleView},
		"its user is disabled": {func(t *testing.T, h *host) {
			if _, err := h.rec.SetDisabled(t.Context(), "ana", true); err != nil {
				t.Fatal(err)
			}
		}, fault.CodeUnauthenticated},
		"refused by the host": {func(_ *testing.T, h *host) { h.full = true }, "host_full"},
		"tried too often":     {func(_ *testing.T, h *host) { h.dies = "before" }, "too_many_attempts"},
		"looked at too often": {func(_ *testing.T, h *host) { h.dies = "asked" }, "too_many_attempts"},
	} {
		for _, away := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, away %t", name, away), func(t *testing.T) {
				inTime(t, 5*time.Minute, func(t *testing.T, h *host) {
					v := h.approved(t)
					h.becomes("before", false)
					h.dying(func() { _, _ = h.resumes(t) })
					h.becomes("", away)
					c.gives(t, h)
					for range 40 {
						time.Sleep(2 * time.Minute) // a dead process's lease
						h.dying(func() { _ = h.sweepAll() })
						h.mu.Lock()
						h.down = false
						h.mu.Unlock()
					}
					h.becomes("", false)
					if _, err := h.rec.SetDisabled(t.Context(), "ana", false); err != nil {
						t.Fatal(err)
					}
					a := h.view(t, v).Actions[0]
					if a.Status != run.ActionFailed || a.ErrorReason != c.reason ||
						a.ExecutionStatus != run.FailedKnown || len(h.runs) > 0 {
						t.Errorf("what was given up is %+v, ran %v", a, h.runs)
					}
					h.full = false
					if _, err := h.begin(a.ActionID, 0); err == nil {
						t.Error("a process that wakes late begins it")
					}
					if open := h.open("ana"); len(open) > 0 {
						t.Errorf("a review is left: %+v", open)
					}
				}, "sleep 600")
			})
		}
	}
}

// dying calls a function in a process that may die.
func (h *host) dying(f func()) {
	dead := make(chan bool)
	go func() {
		defer close(dead)
		f()
	}()
	<-dead
}

// TestFollowManyProcesses loses each process that follows a command, until shortly before its end. The command is not
// left to its user while it may still run. It is left to its user once it should have ended long ago.
func TestFollowManyProcesses(t *testing.T) {
	for until, want := range map[time.Duration]run.ActionStatus{13 * time.Minute: run.ActionCompleted,
		time.Hour: run.ActionFailed} {
		inTime(t, 5*time.Minute, func(t *testing.T, h *host) {
			v, died := h.approved(t), 0
			for h.becomes("after", false); time.Since(v.CreatedAt) < until; h.becomes("looking", false) {
				dead := make(chan bool)
				go func() {
					defer close(dead)
					died++
					_, _ = h.resumes(t)
				}()
				<-dead
				time.Sleep(30 * time.Second)
				if _, err := h.loop.Sweep(t.Context()); err != nil {
					t.Fatal(err)
				}
				if a := h.view(t, v).Actions[0]; a.Status != run.ActionExecuting &&
					time.Since(v.CreatedAt) < 17*time.Minute {
					t.Fatalf("after %s it is %+v", time.Since(v.CreatedAt), a)
				}
			}
			h.becomes("", false)
			for range 20 {
				time.Sleep(time.Minute)
				if err := h.sweepAll(); err != nil && !unit.Held(err) {
					t.Fatal(err)
				}
			}
			if a := h.view(t, v).Actions[0]; a.Status != want || len(h.runs) != 1 {
				t.Errorf("after %d processes died, it is %+v, ran %v", died, a, h.runs)
			}
		}, "sleep 840")
	}
}

// TestFollowUnreachableHost makes the host unreachable for a while, and for good.
func TestFollowUnreachableHost(t *testing.T) {
	for away, want := range map[time.Duration]run.ActionStatus{5 * time.Minute: run.ActionCompleted,
		20 * time.Minute: run.ActionFailed} {
		inTime(t, 2*time.Minute, func(t *testing.T, h *host) {
			v := h.approved(t)
			h.becomes("after", false)
			gone := make(chan bool)
			go func() {
				defer close(gone)
				_, _ = h.resumes(t)
			}()
			<-gone
			h.becomes("", true)
			lost := time.Now()
			for range 40 {
				time.Sleep(time.Minute)
				h.mu.Lock()
				h.down = time.Since(lost) < away
				h.mu.Unlock()
				if err := h.sweepAll(); err != nil && !unit.Held(err) {
					t.Fatal(err)
				}
				if a := h.view(t, v).Actions[0]; a.Status != run.ActionExecuting {
					break
				}
			}
			a := h.view(t, v).Actions[0]
			if a.Status != want || want == run.ActionFailed && a.ErrorReason != fault.CodeUnknownOutcome ||
				len(h.runs) != 1 {
				t.Errorf("away for %s, it is %+v, ran %v", away, a, h.runs)
			}
			if h.looks > 200 {
				t.Errorf("it was asked about %d times", h.looks)
			}
		}, "sleep 60")
	}
}

// TestFollowRandomHistories plays random histories: processes that die before or after they begin the command or are
// cut off, an unreachable host, time, and a stop. In every history the command is started at most once, nothing runs
// one second after a delivered stop, and the run ends. The command is left to its user only if the host was unreachable
// for longer than the command's limit.
func TestFollowRandomHistories(t *testing.T) {
	realpart.Long(t, "it follows three hundred commands through what chance does")
	ended := map[run.ActionStatus]int{}
	for seed := range realpart.TrialsUnraced[int64](100, 300) {
		inTime(t, 2*time.Minute, func(t *testing.T, h *host) {
			random := rand.New(rand.NewSource(seed))
			v, stopped, away := h.approved(t), false, false
			for range 12 {
				down := !stopped && random.Intn(4) == 0
				away = away || down
				h.becomes([]string{"", "", "before", "after"}[random.Intn(4)], down)
				moved := make(chan bool)
				go func() {
					defer close(moved)
					if _, err := h.resumes(t); err != nil && !unit.Held(err) {
						t.Error(err)
					}
				}()
				time.Sleep(time.Duration(random.Intn(120)) * time.Second)
				if !stopped && random.Intn(6) == 0 {
					stopped = true
					h.becomes("", false)
					if _, err := h.loop.Cancel(t.Context(), "ana", v.RunID); err != nil {
						t.Fatal(err)
					}
					_, _ = h.resumes(t)
					time.Sleep(time.Second)
					if h.running() {
						t.Errorf("seed %d: it runs after the stop", seed)
					}
				}
				<-moved
				if _, err := h.loop.Sweep(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			h.becomes("", false)
			for range 40 {
				time.Sleep(time.Minute)
				if err := h.sweepAll(); err != nil && !unit.Held(err) {
					t.Fatal(err)
				}
			}
			now := h.view(t, v)
			a := now.Actions[0]
			ended[a.Status]++
			switch {
			case len(h.runs) > 1:
				t.Errorf("seed %d: begun %d times", seed, len(h.runs))
			case h.running():
				t.Errorf("seed %d: it runs at the end", seed)
			case a.Kind == run.KindReview && !away:
				t.Errorf("seed %d: it is left to its user: %+v", seed, a)
			case a.Kind != run.KindReview && now.Status != run.Completed && now.Status != run.Failed:
				t.Errorf("seed %d: the run is %s, and its action %+v", seed, now.Status, a)
			case a.Status == run.ActionCompleted && len(h.runs) != 1:
				t.Errorf("seed %d: it is completed, and was never begun", seed)
			}
		}, "sleep 150")
	}
	if ended[run.ActionCompleted] < 50 || ended[run.ActionFailed] < 10 {
		t.Errorf("the histories are all alike: %v", ended)
	}
}
