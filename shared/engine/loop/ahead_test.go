package loop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store/memory"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// eager is a model that answers at once, while the commit before its call is under way. Its answer depends only on the
// request. It calls each of its tools once, and then answers with words.
type eager struct {
	calls []script.Call
	log   *journal
	began chan struct{} // receives a value for each call that has begun
	over  chan error    // receives the state of the context of each call that has ended
	waits bool          // it answers only when the commit is durable

	mu    sync.Mutex
	asked int
}

func newEager(log *journal, calls ...script.Call) *eager {
	return &eager{calls: calls, log: log, began: make(chan struct{}, 100), over: make(chan error, 100)}
}

func (m *eager) Name() string { return "eager" }

func (m *eager) Generate(ctx context.Context, req model.Request, delta func(string)) (*model.Reply, error) {
	m.mu.Lock()
	m.asked++
	m.log.add("the model is asked")
	m.mu.Unlock()
	m.began <- struct{}{}
	defer func() { m.over <- ctx.Err() }()
	if m.waits && model.AwaitCommit(ctx) != nil {
		return nil, model.FromContext(ctx)
	}
	seen := 0
	for _, c := range req.Contents {
		seen += strings.Count(string(c), "functionResponse")
	}
	if seen < len(m.calls) {
		turn := script.New(script.Turn{Calls: m.calls[seen : seen+1]})
		return turn.Generate(context.Background(), req, nil)
	}
	if delta != nil {
		delta("All ")
		delta("done.")
	}
	return &model.Reply{Content: json.RawMessage(`{"role":"model","parts":[{"text":"All done."}]}`), Text: "All done.",
		Finish: "STOP", Model: "eager"}, ctx.Err()
}

// journal is what happens, in order.
type journal struct {
	mu    sync.Mutex
	lines []string
}

func (j *journal) add(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = append(j.lines, fmt.Sprintf(format, args...))
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return strings.Join(j.lines, "\n")
}

// sink writes down what leaves the process.
func (j *journal) sink(u unit.Update) {
	switch {
	case u.Delta != "":
		j.add("a reader gets %q", u.Delta)
	case u.Action != nil:
		j.add("a reader gets the action %s %s", u.Action.Tool, u.Action.Status)
	case len(u.Events) > 0:
		j.add("a reader gets %d events", len(u.Events))
	case u.Status != "":
		j.add("a reader gets the status %s", u.Status)
	}
}

// onEveryStore runs a test on each store.
func onEveryStore(t *testing.T, test func(t *testing.T, open func(testing.TB) *env)) {
	t.Run("memory", func(t *testing.T) { test(t, onMemory) })
	onEachStore(t, test)
}

func onMemory(t testing.TB) *env {
	w := &env{t: t, now: began}
	return w.on(memory.New(w.clock), func(time.Duration) {})
}

// hasty is a run of an eager model: a tool that reads, a call that is refused, an effect, and words.
type hasty struct {
	*env
	log    *journal
	model  *eager
	n      int // commits
	at     int // the commit that meets the mishap
	mishap faulty.Hook
}

// commitsOfHasty are the commits of the run: whether a model call rests on them.
var commitsOfHasty = []bool{true, false, true, true, false, true, false}

func newHasty(t *testing.T, w *env) *hasty {
	h := &hasty{env: w, log: &journal{}}
	h.model = newEager(h.log, script.Call{Name: "lookup", Args: map[string]any{"word": "ten"}},
		script.Call{Name: "send"}, script.Call{Name: "send", Args: map[string]any{"to": []string{}, "text": "ten"}})
	d := w.sendDef("send")
	d.Approval, d.Normalize = tool.NotRequired, nil // without a recipient
	d.Execute = func(_ context.Context, c tool.Call, in sendArgs) (sendResult, error) {
		h.log.add("the effect takes place")
		return w.effect(c, in)
	}
	w.loop.Tools["send"] = tool.Define(d)
	w.assistant().Limits.ModelCalls = 8
	w.loop.UserLimits = run.Limits{CallsPerDay: 100}
	w.loop.Model = h.model
	w.loop.Store = faulty.Wrap(w.store, faulty.Commits(h.hold))
	return h
}

// hold holds each commit until the model call that rests on it has begun. After the mishap it holds none.
func (h *hasty) hold(ctx context.Context, c *faulty.Call, next faulty.Next) error {
	h.n++
	if (h.at == 0 || h.n <= h.at) && commitsOfHasty[h.n-1] {
		<-h.model.began
	}
	if h.n == h.at {
		return h.mishap(ctx, c, next)
	}
	err := next(ctx)
	h.log.add("commit %d is durable", h.n)
	return err
}

func (h *hasty) start(t *testing.T) (*run.View, error) {
	return h.loop.Start(t.Context(), loop.StartRequest{UID: "ana", Key: "once", BodyHash: "once", Sink: h.log.sink},
		loop.Prompt{Text: "tell bob"})
}

// TestAheadOrder checks the order of everything that happens in a run. Each model call begins before the commit that it
// rests on is durable. Each effect, and all that a reader gets, comes after it.
func TestAheadOrder(t *testing.T) {
	onEveryStore(t, func(t *testing.T, open func(testing.TB) *env) {
		h := newHasty(t, open(t))
		measured := h.measured()
		v, err := h.start(t)
		if err != nil || v.Status != run.Completed || len(h.effects) != 1 {
			t.Fatalf("%v, %+v, effects %q\n%s", err, v, h.effects, h.log)
		}
		if got := h.log.String(); got != inOrder {
			t.Errorf("got\n%s\nwant\n%s", got, inOrder)
		}
		if got := points(measured); strings.Contains(got, "discarded") {
			t.Errorf("model calls were dropped:\n%s", got)
		}
	})
}

// TestAheadKilledAtCommit kills the process at each commit, before and after it, with the model's answer at hand.
// Nothing leaves the process after that. Later processes end the run, and the effect takes place once.
func TestAheadKilledAtCommit(t *testing.T) {
	onEveryStore(t, func(t *testing.T, open func(testing.TB) *env) {
		for n := range commitsOfHasty {
			for _, after := range []bool{false, true} {
				killHasty(t, newHasty(t, open(t)), n+1, after)
			}
		}
	})
}

func killHasty(t *testing.T, h *hasty, n int, after bool) {
	t.Helper()
	h.at = n
	h.mishap = func(ctx context.Context, c *faulty.Call, next faulty.Next) error {
		h.log.add("it dies")
		return faulty.Kill(after)(ctx, c, next)
	}
	if !faulty.Dies(func() { _, _ = h.start(t) }) || !strings.HasSuffix(h.log.String(), "it dies") {
		t.Fatalf("commit %d, after %t: it lived, or more left it:\n%s", n, after, h.log)
	}
	h.settle = []string{"not_done"}
	if len(h.effects) > 0 {
		h.settle = []string{"done"}
	}
	h.loop.Store = h.store
	v, err := h.start(t)
	for i := 0; i < 10 && err == nil && v.Status != run.Completed; i++ {
		h.tick(5 * time.Minute)
		h.sweeps(t)
		v, _, err = h.loop.Get(t.Context(), "ana", v.RunID)
	}
	if err != nil || v.Status != run.Completed || len(h.effects) != 1 {
		t.Fatalf("commit %d, after %t: %v, %+v, effects %q", n, after, err, v, h.effects)
	}
}

// TestAheadLeaseRenewed delays the answer to each commit that a model call rests on, so that the process must renew its
// lease before it waits for the model. The call that has begun is used nevertheless.
func TestAheadLeaseRenewed(t *testing.T) {
	onEveryStore(t, func(t *testing.T, open func(testing.TB) *env) {
		for n, rests := range commitsOfHasty {
			if !rests {
				continue
			}
			h := newHasty(t, open(t))
			measured := h.measured()
			h.at = n + 1
			h.mishap = faulty.After(func(*faulty.Call) { h.tick(20 * time.Second) })
			v, err := h.start(t)
			if err != nil || v.Status != run.Completed || len(h.effects) != 1 || h.n != len(commitsOfHasty)+1 {
				t.Errorf("commit %d: %v, %+v, effects %q, %d commits; want a completed run and one commit more", n+1,
					err, v, h.effects, h.n)
			}
			if got := points(measured); h.model.asked != 4 || strings.Contains(got, "discarded") {
				t.Errorf("commit %d: the model was asked %d times; want 4, none of them dropped:\n%s", n+1,
					h.model.asked, got)
			}
		}
	})
}

// TestAheadOutputBeforeCommit holds the first commit until all that can happen has happened.
func TestAheadOutputBeforeCommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, log, free := onMemory(t), &journal{}, make(chan struct{})
		w.loop.Model = newEager(log)
		w.loop.Store = faulty.Wrap(w.store, faulty.Commits(faulty.Nth(1, faulty.Before(func(*faulty.Call) { <-free }))))
		ended := make(chan error)
		go func() {
			_, err := w.loop.Start(t.Context(), loop.StartRequest{UID: "ana", Sink: log.sink}, loop.Prompt{Text: "go"})
			ended <- err
		}()
		synctest.Wait()
		if got := log.String(); got != "the model is asked" {
			t.Errorf("before the commit:\n%s", got)
		}
		close(free)
		if err := <-ended; err != nil || !strings.HasSuffix(log.String(), "completed") {
			t.Errorf("%v:\n%s", err, log)
		}
	})
}

const inOrder = `the model is asked
commit 1 is durable
a reader gets 2 events
a reader gets the status queued
a reader gets the status planning
commit 2 is durable
a reader gets 3 events
a reader gets the action lookup planned
a reader gets the status executing
the model is asked
commit 3 is durable
a reader gets 2 events
a reader gets the action lookup completed
a reader gets the status planning
the model is asked
commit 4 is durable
a reader gets 3 events
a reader gets the action send planned
a reader gets the action send failed
commit 5 is durable
a reader gets 4 events
a reader gets the action send planned
a reader gets the action send executing
a reader gets the status executing
the effect takes place
the model is asked
commit 6 is durable
a reader gets 2 events
a reader gets the action send completed
a reader gets the status planning
a reader gets "All "
a reader gets "done."
commit 7 is durable
a reader gets 2 events
a reader gets the status completed`
