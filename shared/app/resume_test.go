package app_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/queue"
	queueembedded "github.com/countersign-run/countersign/shared/engine/queue/embedded"
	"github.com/countersign-run/countersign/shared/engine/queue/pubsub"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/emulators"
)

// clerkFunction is the function that advances the runs of the agent clerk.
const clerkFunction = "resume-clerk"

// counted is a model that counts the requests of one process.
type counted struct {
	model.Model
	asked *atomic.Int32
}

func (c counted) Generate(ctx context.Context, r model.Request, delta func(string)) (*model.Reply, error) {
	c.asked.Add(1)
	return c.Model.Generate(ctx, r, delta)
}

// twoFunctions is a deployment with two resume functions over one store and one topic. Each message is pushed to both,
// as by Pub/Sub's emulator, which ignores filters. The first function's process serves everything else.
type twoFunctions struct {
	*proved // the process of resume
	clerk   *testkit.Deployment
	ahead   atomic.Int64 // of the clock

	askedHere, askedByClerk atomic.Int32
	messages                []queue.Delivery // acknowledged by both
}

func openTwoFunctions(t *testing.T, settings ...string) *twoFunctions {
	t.Helper()
	return openTwo(t, nil, settings...)
}

func openTwo(t *testing.T, also []app.Option, settings ...string) *twoFunctions {
	t.Helper()
	saved := api.Functions
	api.Functions = append(slices.Clone(saved), api.ResumeFunction(clerkFunction))
	t.Cleanup(func() { api.Functions = saved })
	w, dir := &twoFunctions{}, t.TempDir()
	options := func(function string, asked *atomic.Int32) testkit.Options {
		now := func() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }
		return testkit.Options{Dir: dir, Settings: settings, App: append(slices.Clone(also), app.As(function),
			app.WithClock(now), app.WithEnv(func(l *unit.Env) {
				its := *l.Agents["assistant"]
				its.Name, its.Worker, its.Instructions = "clerk", clerkFunction, registry.Text("You are the clerk.")
				its.Limits.Deadline = 40 * time.Minute // the users' tokens last an hour
				l.Agents["clerk"], l.Model = &its, counted{l.Model, asked}
			}))}
	}
	first, err := testkit.New(t.Context(), options("resume", &w.askedHere))
	if err != nil {
		t.Fatal(err)
	}
	w.proved, w.clerk = &proved{first, t}, &testkit.Deployment{Cloud: first.Cloud, Logs: &testkit.Log{}}
	if err := w.clerk.Start(t.Context(), options(clerkFunction, &w.askedByClerk)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(w.clerk.Stop(), first.Close()); err != nil {
			t.Error(err)
		}
	})
	return w
}

// pushes returns functions that push a message to each of the two functions.
func (w *twoFunctions) pushes() []queueembedded.Push {
	return []queueembedded.Push{w.Push(w.Base),
		queueembedded.HTTPPush(w.clerk.Base+"/api/agent/"+clerkFunction, w.PushToken, http.DefaultClient)}
}

// deliver pushes each due message to both functions.
func (w *twoFunctions) deliver() {
	w.t.Helper()
	both := w.pushes()
	_, err := w.App.Queue.(*queueembedded.Queue).Deliver(w.t.Context(), func(ctx context.Context, body []byte) error {
		d, err := queue.ParsePush(body, "")
		for _, push := range both {
			err = errors.Join(err, push(ctx, body))
		}
		if err != nil {
			w.t.Errorf("%+v: %v", d, err)
		}
		w.messages = append(w.messages, d)
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// resolve approves everything that waits.
func (w *twoFunctions) resolve(r testkit.Answer) {
	w.t.Helper()
	for _, a := range r.Approvals {
		if got, err := w.Resolve(w.t.Context(), "ana", a, "approve_once"); err != nil || got.HTTP != http.StatusOK {
			w.t.Fatalf("%v %s; want got.HTTP %v", err, got.Body, http.StatusOK)
		}
	}
}

// wantAsked compares the number of each process's model requests.
func (w *twoFunctions) wantAsked(here, clerk int32) {
	w.t.Helper()
	if h, c := w.askedHere.Load(), w.askedByClerk.Load(); h != here || c != clerk {
		w.t.Errorf("resume has asked the model %d times and %s %d times, want %d and %d", h, clerkFunction, c, here,
			clerk)
	}
}

func (w *twoFunctions) run(id string) testkit.Answer {
	w.t.Helper()
	return w.call("GET", "/api/agent/runs/"+id, "")
}

// TestResumeTwoFunctions checks that each run is moved by its agent's function. The other function acknowledges and
// ignores the message; none is lost, and nothing is done twice.
func TestResumeTwoFunctions(t *testing.T) {
	onEachStore(t, func(t *testing.T, settings ...string) {
		w := openTwoFunctions(t, settings...)
		w.mail()
		r := w.askOf("clerk")
		if w.wantAsked(0, 0); r.HTTP != http.StatusAccepted {
			t.Errorf("it begins as %s", r.Body)
		}
		w.deliver()
		if w.wantAsked(0, 1); len(w.messages) != 1 || w.messages[0].Agent != "clerk" {
			t.Errorf("the messages are %+v", w.messages)
		}
		other := w.ask()
		w.wantAsked(1, 1)
		w.resolve(w.run(r.RunID))
		w.resolve(other)
		w.deliver()
		w.wantAsked(2, 2)
		for _, id := range []string{r.RunID, other.RunID} {
			if got := w.run(id); got.Status != "completed" {
				t.Errorf("%s; want got.Status “completed”", got.Body)
			}
		}
		if sent := w.Effects(); len(sent) != 2 {
			t.Errorf("%d e-mails were sent", len(sent))
		}
		for _, d := range w.messages[1:] {
			if want := map[string]string{r.RunID: "clerk", other.RunID: "assistant"}[d.RunID]; d.Agent != want {
				t.Errorf("a message about a run of the %s is of the %q", want, d.Agent)
			}
		}
	})
}

// TestResumeSweepAgents checks that lost messages are requested again for the right function, and that messages of
// the previous release, which name no agent, count as the assistant's.
func TestResumeSweepAgents(t *testing.T) {
	onEachStore(t, func(t *testing.T, settings ...string) {
		w := openTwoFunctions(t, settings...)
		w.mail()
		r := w.askOf("clerk")
		w.lose()
		if err := w.App.Queue.Resume(t.Context(), queue.Message{RunID: r.RunID}); err != nil {
			t.Fatal(err)
		}
		w.deliver()
		w.wantAsked(0, 0)
		w.ahead.Add(int64(10 * time.Minute))
		if a, err := w.Sweep(t.Context()); err != nil || !strings.Contains(string(a.Body), `"published":1`) {
			t.Fatalf("%v %s; want a.Body with %q", err, a.Body, `"published":1`)
		}
		w.deliver()
		w.wantAsked(0, 1)
		if d := w.messages[len(w.messages)-1]; d.RunID != r.RunID || d.Agent != "clerk" {
			t.Errorf("the sweep publishes %+v", d)
		}
		other := w.ask()
		w.resolve(other)
		w.lose()
		if err := w.App.Queue.Resume(t.Context(), queue.Message{RunID: other.RunID}); err != nil {
			t.Fatal(err)
		}
		w.deliver()
		if got := w.run(other.RunID); got.Status != "completed" {
			t.Errorf("%s; want got.Status “completed”", got.Body)
		}
	})
}

// lose deletes all messages.
func (w *twoFunctions) lose() {
	w.t.Helper()
	q := w.App.Queue.(*queueembedded.Queue)
	_, err := q.Withdraw(w.t.Context(), func(_ context.Context, ids []string) (map[string]bool, error) {
		all := map[string]bool{}
		for _, id := range ids {
			all[id] = true
		}
		return all, nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// TestResumeUnservedAgent checks that resume ends such an agent's runs at their deadline.
func TestResumeUnservedAgent(t *testing.T) {
	w := openTwoFunctions(t)
	w.mail()
	r := w.askOf("clerk")
	w.deliver()
	for _, l := range []*loop.Loop{w.App.API.Loop, w.clerk.App.API.Loop} {
		delete(l.Agents, "clerk")
	}
	w.ahead.Add(int64(50 * time.Minute))
	if a, err := w.Sweep(t.Context()); err != nil || !strings.Contains(string(a.Body), `"published":1`) {
		t.Fatalf("%v %s; want a.Body with %q", err, a.Body, `"published":1`)
	}
	w.deliver()
	if got := w.run(r.RunID); got.Status != "failed" || !strings.Contains(string(got.Body), `"agent_gone"`) {
		t.Errorf("%s; want got.Status “failed”, got.Body with %q", got.Body, `"agent_gone"`)
	}
	w.wantAsked(0, 1)
}

// TestResumeTwoSubscriptions pushes the messages of one topic to both functions with Pub/Sub's emulator, which ignores
// the subscriptions' filters.
func TestResumeTwoSubscriptions(t *testing.T) {
	t.Setenv("FIRESTORE_EMULATOR_HOST", emulators.Firestore(t))
	t.Setenv("PUBSUB_EMULATOR_HOST", emulators.PubSub(t))
	project, topic := "demo-"+strings.ToLower(rand.Text()[:12]), "agent-resume"
	w := openTwoFunctions(t, "STORE=firestore", "QUEUE=pubsub", "GOOGLE_CLOUD_PROJECT="+project, "RESUME_TOPIC="+topic)
	taken := []chan queue.Delivery{make(chan queue.Delivery, 100), make(chan queue.Delivery, 100)}
	relays := http.NewServeMux()
	for i, push := range w.pushes() {
		relays.Handle(fmt.Sprintf("/%d", i), pubsub.Relay(func(ctx context.Context, body []byte) error {
			d, err := queue.ParsePush(body, "")
			if err = errors.Join(err, push(ctx, body)); err == nil {
				taken[i] <- d
			}
			return err
		}))
	}
	srv := httptest.NewServer(relays)
	t.Cleanup(srv.Close)
	if err := pubsub.Emulate(t.Context(), project, topic, srv.URL+"/0", pubsub.Subscriber{Name: "clerk",
		PushURL: srv.URL + "/1", Filter: `attributes.agent = "clerk"`}); err != nil {
		t.Fatal(err)
	}
	next := func(function int) (d queue.Delivery) {
		select {
		case d = <-taken[function]:
		case <-time.After(await.Most):
			t.Fatal("nothing was pushed")
		}
		return d
	}
	w.mail()
	r := w.askOf("clerk")
	if d := next(1); d.RunID != r.RunID || d.Agent != "clerk" {
		t.Errorf("pushed is %+v", d)
	}
	w.wantAsked(0, 1)
	w.resolve(w.run(r.RunID))
	next(1)
	w.wantAsked(0, 2)
	other := w.ask()
	w.resolve(other)
	for next(0).RunID != other.RunID { // earlier messages of the clerk's run, which it ignores
	}
	w.wantAsked(2, 2)
	for _, id := range []string{r.RunID, other.RunID} {
		if got := w.run(id); got.Status != "completed" {
			t.Errorf("%s; want got.Status “completed”", got.Body)
		}
	}
	if sent := w.Effects(); len(sent) != 2 {
		t.Errorf("%d e-mails were sent", len(sent))
	}
}
