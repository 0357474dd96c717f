package app_test

import (
	"context"
	"net/http"
	"sync"
	"testing"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/await"
)

// working makes the deployments move their requested runs until the test ends.
func working(t testing.TB, all ...*testkit.Deployment) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var moving sync.WaitGroup
	for _, d := range all {
		moving.Go(func() { d.App.Work(ctx) })
	}
	t.Cleanup(func() { cancel(); moving.Wait() })
}

// decided approves what waits, and returns the run once it has ended.
func (w *proved) decided(r testkit.Answer) testkit.Answer {
	w.t.Helper()
	c, err := w.As(w.t.Context(), "ana")
	if err != nil {
		w.t.Fatal(err)
	}
	if len(r.Approvals) != 1 {
		w.t.Fatalf("%s; want len(r.Approvals) 1", r.Body)
	}
	got, err := c.Resolve(w.t.Context(), r.Approvals[0], "approve_once", testkit.Wait...)
	if err != nil || got.HTTP != http.StatusOK {
		w.t.Fatalf("%v %s; want got.HTTP %v", err, got.Body, http.StatusOK)
	}
	return got
}

func (w *proved) messages() int {
	w.t.Helper()
	docs, err := w.App.Store.Query(w.t.Context(), document.AllMessages(100))
	if err != nil {
		w.t.Fatal(err)
	}
	return len(docs)
}

// TestWork advances a run in the process that received the request: nothing is delivered, and no queue keeps anything.
func TestWork(t *testing.T) {
	w := deployWith(t, testkit.Options{App: []app.Option{app.Working()}})
	w.mail()
	r := w.ask()
	working(t, w.Deployment)
	if got := w.decided(r); got.Status != "completed" || len(w.Effects()) != 1 {
		t.Errorf("%d e-mails, and %s", len(w.Effects()), got.Body)
	}
	if n := w.messages(); n != 0 {
		t.Errorf("%d messages are left", n)
	}
}

// TestWorkPushed sets QUEUE to push documents, as in the cloud, in a process that could advance runs itself.
func TestWorkPushed(t *testing.T) {
	w := deployWith(t, testkit.Options{App: []app.Option{app.Working()}, Settings: []string{"QUEUE=push"}})
	w.mail()
	working(t, w.Deployment)
	if got := w.approve(w.ask()); got.Status != "completed" || len(w.Effects()) != 1 {
		t.Errorf("%d e-mails, and %s", len(w.Effects()), got.Body)
	}
}

// TestWorkAfterCrash ends a process between a decision and the move. The next process continues the run.
func TestWorkAfterCrash(t *testing.T) {
	o := testkit.Options{App: []app.Option{app.Working()}}
	w := deployWith(t, o)
	w.mail()
	for _, a := range w.ask().Approvals {
		if got, err := w.Resolve(t.Context(), "ana", a, "approve_once"); err != nil || got.HTTP != http.StatusOK {
			t.Fatalf("%v %s; want got.HTTP %v", err, got.Body, http.StatusOK)
		}
	}
	if err := w.Stop(); err != nil { // no process advanced the run, and the wake-up is lost
		t.Fatal(err)
	}
	o.Dir = w.App.Config.DataDir
	if err := w.Start(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if n, err := w.App.API.Loop.Reclaim(t.Context()); n != 1 || err != nil {
		t.Fatalf("%d runs were taken up: %v", n, err)
	}
	working(t, w.Deployment)
	w.waitForEffect()
}

// waitForEffect waits until an e-mail was sent.
func (w *proved) waitForEffect() {
	w.t.Helper()
	await.That(w.t, "a mail is sent", func() bool { return len(w.Effects()) > 0 })
}

// TestWorkOfTwoProcesses checks that each of two processes on one file advances the runs of its own agents, whichever
// process receives the request.
func TestWorkOfTwoProcesses(t *testing.T) {
	w := openTwo(t, []app.Option{app.Working()})
	w.mail()
	working(t, w.Deployment, w.clerk)
	ana, err := w.As(t.Context(), "ana")
	if err != nil {
		t.Fatal(err)
	}
	r, err := ana(t.Context(), "POST", "/api/agent/run", map[string]string{"agent": "clerk", "prompt": "please do it"},
		testkit.Wait...)
	if err != nil || r.Status != "awaiting_confirmation" {
		t.Fatalf("%v %s; want r.Status “awaiting_confirmation”", err, r.Body)
	}
	w.wantAsked(0, 1)
	if got := w.decided(r); got.Status != "completed" {
		t.Errorf("%s; want got.Status “completed”", got.Body)
	}
	w.wantAsked(0, 2)
	if got := w.decided(w.ask()); got.Status != "completed" {
		t.Errorf("%s; want got.Status “completed”", got.Body)
	}
	w.wantAsked(2, 2)
	if n := len(w.Effects()); n != 2 {
		t.Errorf("%d e-mails were sent", n)
	}
}

// TestWorkOfDecidingProcess runs the function that records decisions as its own process on the same file.
func TestWorkOfDecidingProcess(t *testing.T) {
	w := deployWith(t, testkit.Options{App: []app.Option{app.Working()}})
	w.mail()
	other := &proved{&testkit.Deployment{Cloud: w.Cloud, Logs: &testkit.Log{}}, t}
	if err := other.Start(t.Context(), testkit.Options{Dir: w.App.Config.DataDir}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := other.Stop(); err != nil {
			t.Error(err)
		}
	})
	working(t, w.Deployment, other.Deployment)
	if got := other.decided(other.ask()); got.Status != "completed" || len(w.Effects()) != 1 {
		t.Errorf("%d e-mails, and %s", len(w.Effects()), got.Body)
	}
}
