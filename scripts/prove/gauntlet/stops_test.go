package gauntlet

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/scripts/prove/gauntlet/trial"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
)

// twoMails is a model that requests two e-mails in one turn.
func twoMails(r fakegemini.Request) fakegemini.Turn {
	if len(r.Responses()) > 0 {
		return fakegemini.Turn{Text: "Both are sent."}
	}
	return fakegemini.Turn{Calls: []fakegemini.Call{
		{Name: "gmail_send", Args: testkit.Mail("bob@x.org", "first", "b")},
		{Name: "gmail_send", Args: testkit.Mail("dan@x.org", "second", "b")},
	}}
}

// whileSending calls f once, right before a draft is sent.
func (w *proved) whileSending(f func()) {
	once := sync.OnceFunc(f)
	w.SetFault(func(op string) fakegoogle.Fault {
		if op == "gmail.drafts.send" {
			once()
		}
		return fakegoogle.Fault{}
	})
}

// another starts a second instance on the same store, and returns a function that cancels a run there.
func (w *proved) another(dir string, settings ...string) (cancel func(runID string) testkit.Answer) {
	w.t.Helper()
	other := &testkit.Deployment{Cloud: w.Cloud, Logs: w.Logs}
	if err := other.Start(w.t.Context(), testkit.Options{Dir: dir, Settings: settings}); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := other.Stop(); err != nil {
			w.t.Error(err)
		}
	})
	return func(runID string) testkit.Answer {
		a, err := other.Call(w.t.Context(), trial.First, "POST", "/api/agent/runs/"+runID+"/cancel", "")
		if err != nil || a.HTTP != http.StatusOK {
			w.t.Errorf("the other instance does not stop it: %v %d %s", err, a.HTTP, a.Body)
		}
		return a
	}
}

// TestStoppedFromAnotherInstance is case 14.
func TestStoppedFromAnotherInstance(t *testing.T) {
	t.Run("during the model call", func(t *testing.T) {
		dir := t.TempDir()
		w := deploy(t, testkit.Options{Dir: dir})
		cancel := w.another(dir)
		asked, answer := make(chan struct{}), make(chan struct{})
		w.SetModel(func(r fakegemini.Request) fakegemini.Turn {
			close(asked)
			<-answer
			return twoMails(r)
		})
		ended := make(chan testkit.Answer)
		go func() {
			a, err := w.Ask(t.Context(), trial.First, "send both")
			if err != nil {
				t.Error(err)
			}
			ended <- a
		}()
		<-asked
		var threads struct{ Threads []struct{ ThreadID string } }
		await.That(t, "the run is stored", func() bool { // the model is asked while it is
			w.decode(w.call("GET", "/threads", ""), &threads)
			return len(threads.Threads) > 0
		})
		var messages struct{ Messages []struct{ RunID string } }
		w.decode(w.call("GET", "/threads/"+threads.Threads[0].ThreadID+"/messages", ""), &messages)
		cancel(messages.Messages[0].RunID)
		close(answer)
		if got := <-ended; got.Status != "failed" || got.ErrorReason != "cancelled" || len(got.Actions) != 0 ||
			len(got.Approvals) != 0 {
			t.Errorf("%s; want got.Status “failed”, got.ErrorReason “cancelled”, len(got.Actions) 0, "+
				"len(got.Approvals) 0",
				got.Body)
		}
		w.deliver()
		w.wantMails(0)
	})
	t.Run("during a tool", func(t *testing.T) {
		dir := t.TempDir()
		w := deploy(t, testkit.Options{Dir: dir})
		cancel := w.another(dir)
		w.SetModel(twoMails)
		r := w.ask("send both", "")
		w.approve(r)
		w.whileSending(func() { cancel(r.RunID) })
		w.deliver()
		w.stoppedAfterTheFirst(r.RunID, "cancelled")
	})
}

// stoppedAfterTheFirst checks that the first of two e-mails was sent and that the summary says so, and that the second
// was not sent.
func (w *proved) stoppedAfterTheFirst(runID, reason string) {
	w.t.Helper()
	v, _, err := w.App.API.Loop.Get(w.t.Context(), trial.First, runID)
	if err != nil {
		w.t.Fatal(err)
	}
	if v.Status != run.Failed || string(v.ErrorReason) != reason ||
		!strings.Contains(v.Summary, "to bob@x.org.\nNot done, because ") ||
		!strings.Contains(v.Summary, "(To: dan@x.org, ") {
		w.t.Errorf("the run is %s %s: %s", v.Status, v.ErrorReason, v.Summary)
	}
	if v.Actions[0].Status != run.ActionCompleted || v.Actions[1].Status != run.ActionFailed ||
		v.Actions[1].ExecutionStatus != run.NotStarted {
		w.t.Errorf("the actions are %+v and %+v", v.Actions[0], v.Actions[1])
	}
	if sent := w.Google.Messages(); len(sent) != 1 || sent[0].Subject != "first" {
		w.t.Errorf("sent: %+v", sent)
	}
}

// clock is a clock that a test can advance.
type clock struct {
	mu    sync.Mutex
	ahead time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

func (c *clock) forward(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead += d
}

// overdue returns a run of two e-mails whose deadline is a day away, and the clock. Tokens expire within an hour, so
// the tests call the engine directly.
func overdue(t *testing.T) (*proved, *clock, *run.View) {
	t.Helper()
	c := &clock{}
	w := deploy(t, testkit.Options{Settings: []string{"APPROVAL_TTL=24h", "RUN_DEADLINE=24h"},
		App: []app.Option{app.WithClock(c.now)}})
	w.SetModel(twoMails)
	if _, err := w.SignIn(t.Context(), trial.First); err != nil {
		t.Fatal(err)
	}
	v, err := w.App.API.Loop.Start(t.Context(), loop.StartRequest{UID: trial.First}, loop.Prompt{Text: "send both"})
	if err != nil {
		t.Fatal(err)
	}
	return w, c, v
}

const tooLate = 24*time.Hour + time.Second

// resolveBoth approves both e-mails, and returns the first error.
func (w *proved) resolveBoth(runID string) error {
	for n := 1; n <= 2; n++ {
		_, err := w.App.API.Loop.Resolve(w.t.Context(),
			approval.Resolution{UID: trial.First, ApprovalID: run.ApprovalID(runID, n), Decision: run.ApproveOnce})
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *proved) advance(ctx context.Context, runID string) *run.View {
	w.t.Helper()
	v, err := w.App.API.Loop.Advance(ctx, runID, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return v
}

// TestPassedDeadline is case 15.
func TestPassedDeadline(t *testing.T) {
	t.Run("during a pause", func(t *testing.T) {
		w, c, v := overdue(t)
		c.forward(tooLate)
		if err := w.resolveBoth(v.RunID); !fault.Is(err, fault.Policy, fault.CodeExpired) {
			t.Errorf("a yes after the deadline: %v", err)
		}
		if swept, err := w.App.API.Loop.Sweep(t.Context()); err != nil || swept.Published != 1 {
			t.Errorf("the sweep: %+v, %v", swept, err)
		}
		if end := w.advance(t.Context(), v.RunID); end.Status != run.Failed || end.ErrorReason != "deadline" {
			t.Errorf("the run is %s %s", end.Status, end.ErrorReason)
		}
		if err := w.resolveBoth(v.RunID); !fault.Is(err, fault.Policy, fault.CodeAlreadyResolved) {
			t.Errorf("a yes after the end: %v", err)
		}
		w.wantMails(0)
	})
	t.Run("during a tool", func(t *testing.T) {
		w, c, v := overdue(t)
		if err := w.resolveBoth(v.RunID); err != nil {
			t.Fatal(err)
		}
		w.whileSending(func() { c.forward(tooLate) })
		w.advance(t.Context(), v.RunID)
		w.stoppedAfterTheFirst(v.RunID, "deadline")
	})
	t.Run("during a hand-over", func(t *testing.T) {
		w, c, v := overdue(t)
		if err := w.resolveBoth(v.RunID); err != nil {
			t.Fatal(err)
		}
		// This is enough time for one of the two e-mails.
		short, cancel := context.WithTimeout(t.Context(), w.App.API.Loop.Agents[run.Assistant].Limits.ToolTimeout)
		defer cancel()
		if handed := w.advance(short, v.RunID); handed.Status != run.Executing {
			t.Fatalf("the run is %s", handed.Status)
		}
		c.forward(tooLate)
		w.advance(t.Context(), v.RunID)
		w.stoppedAfterTheFirst(v.RunID, "deadline")
	})
}
