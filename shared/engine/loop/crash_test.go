package loop_test

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

// mortal returns a store that kills its process at the n-th commit, before or after the commit takes place.
func mortal(st store.Store, n int, after bool) *faulty.Store {
	return faulty.Wrap(st, faulty.Commits(faulty.Nth(n, faulty.Kill(after))))
}

// asked is a model whose answer depends only on its request: it calls the tool until it sees the response. It counts
// the calls that are not dropped with a commit.
type asked struct {
	tool string
	args string // empty: those of the env's tools
	mu   sync.Mutex
	n    int
}

func (a *asked) Name() string { return "asked" }

func (a *asked) Generate(ctx context.Context, req model.Request, _ func(string)) (*model.Reply, error) {
	if err := model.AwaitCommit(ctx); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.n++
	for _, c := range req.Contents {
		if strings.Contains(string(c), "functionResponse") {
			return &model.Reply{Content: json.RawMessage(`{"role":"model","parts":[{"text":"Done."}]}`), Text: "Done.",
				Finish: "STOP", Model: "asked"}, nil
		}
	}
	args := `{"to":["bob@x.org"],"text":"ten"}`
	if a.tool == "lookup" {
		args = `{"word":"ten"}`
	}
	args = cmp.Or(a.args, args)
	content := fmt.Sprintf(`{"role":"model","parts":[{"functionCall":{"id":"c1","name":%q,"args":%s},"thoughtSignature":"c2ln"}]}`, a.tool, args)
	return &model.Reply{Content: json.RawMessage(content),
		Calls: []model.Call{{ID: "c1", Name: a.tool, Args: json.RawMessage(args)}}, Finish: "STOP", Model: "asked"}, nil
}

// mortally runs f in a process that may die, and reports whether it did.
func mortally(f func() error) (died bool, err error) {
	died = faulty.Dies(func() { err = f() })
	return died, err
}

// TestKilledAtEveryCommit kills the process before and after each commit of start, approve and resume, lets another
// process take up the run, and checks the real acts of the provider.
func TestKilledAtEveryCommit(t *testing.T) { onEachStore(t, killedAtEveryCommit) }

func killedAtEveryCommit(t *testing.T, open func(testing.TB) *env) {
	for _, toolName := range []string{"send", "draft"} {
		for _, after := range []bool{false, true} {
			for n := 1; n <= 8; n++ {
				t.Run(fmt.Sprintf("%s/after=%v/%d", toolName, after, n), func(t *testing.T) {
					killAt(t, open(t), toolName, n, 6, after)
				})
			}
			for n := 1; n <= 4; n++ {
				t.Run(fmt.Sprintf("%s allowed/after=%v/%d", toolName, after, n), func(t *testing.T) {
					w := open(t)
					alwaysAllow(t, w, toolName)
					killAt(t, w, toolName, n, 4, after)
				})
			}
		}
	}
}

// alwaysAllow always allows the recipients of the model's call for ana, by an approval with that choice.
func alwaysAllow(t *testing.T, w *env, toolName string) {
	t.Helper()
	w.loop.Model = &asked{tool: toolName}
	v := start(t, w, "tell bob")
	decide(t, w, v, 1, run.ApproveAlways)
	deliver(t, w)
	w.effects = nil
}

func killAt(t *testing.T, w *env, toolName string, n, commits int, after bool) {
	ctx := context.Background()
	w.loop.Store, w.loop.Model = mortal(w.store, n, after), &asked{tool: toolName}
	ask := loop.StartRequest{UID: "ana", Key: "k1", BodyHash: "h"}
	runID := run.KeyedRunID("ana", "k1")
	life := func() error {
		if _, err := w.loop.Start(ctx, ask, loop.Prompt{Text: "tell bob"}); err != nil {
			return err
		}
		for _, a := range w.open("ana") {
			if a.Kind != run.KindApproval {
				continue
			}
			if _, err := w.loop.Resolve(ctx,
				approval.Resolution{UID: "ana", ApprovalID: a.ApprovalID, Decision: run.ApproveOnce}); err != nil {
				return err
			}
		}
		return w.deliver(ctx)
	}
	died, err := mortally(life)
	if err != nil {
		t.Fatal(err)
	}
	if !died && n <= commits {
		t.Fatalf("the run made fewer than %d commits: the kill did not happen", n)
	}
	for range 3 { // other processes, later, with every message delivered again
		w.tick(3 * time.Minute)
		if _, err := w.loop.Sweep(ctx); err != nil {
			t.Fatal(err)
		}
		if err := w.deliver(ctx); err != nil && !unit.Held(err) {
			t.Fatal(err)
		}
		if err := life(); err != nil {
			t.Fatal(err)
		}
	}
	w.tick(3 * time.Minute)
	w.queue = append(w.queue, runID, runID)
	deliver(t, w)
	v, _, err := w.loop.Get(ctx, "ana", runID)
	if err != nil {
		t.Fatal(err)
	}
	verdict(t, w, v, toolName)
}

// verdict compares the recorded events with the acts of the provider.
func verdict(t *testing.T, w *env, v *run.View, toolName string) {
	t.Helper()
	a := v.Actions[0]
	switch {
	case len(w.effects) > 1:
		t.Fatalf("done %d times", len(w.effects))
	case v.Status == run.Completed && (a.Status != run.ActionCompleted || len(w.effects) != 1):
		t.Fatalf("the run is completed, the action is %s, and it was done %d times", a.Status, len(w.effects))
	case v.Status == run.Completed:
	case toolName == "send" && v.Status == run.Awaiting && a.ExecutionStatus == run.UnknownState:
		if open := w.open("ana"); len(open) != 1 || open[0].Kind != run.KindReview {
			t.Fatalf("an unknown outcome has no review: %+v", open)
		}
	default:
		t.Fatalf("the run is %s (%s), its action %s/%s, and it was done %d times", v.Status, v.Message, a.Status,
			a.ExecutionStatus, len(w.effects))
	}
}

// TestResumeRace lets many processes take up one approved run at once. One of them carries it out.
func TestResumeRace(t *testing.T) { onEachStore(t, oneProcessAmongMany) }

func oneProcessAmongMany(t *testing.T, open func(testing.TB) *env) {
	for _, toolName := range []string{"send", "draft"} {
		t.Run(toolName, func(t *testing.T) {
			ctx := context.Background()
			w := open(t)
			w.loop.Model = &asked{tool: toolName}
			v := start(t, w, "tell bob")
			approve(t, w, v, 1)
			var wg sync.WaitGroup
			for range 20 {
				wg.Go(func() {
					if _, err := w.loop.Advance(ctx, v.RunID, nil); err != nil && !unit.Held(err) {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			got, _, err := w.loop.Get(ctx, "ana", v.RunID)
			if err != nil || got.Status != run.Completed || len(w.effects) != 1 {
				t.Fatalf("%v, %+v, done %d times", err, got, len(w.effects))
			}
		})
	}
}

// TestResolveRace approves and rejects from a hundred clients at once: one decision is recorded, and every client gets
// the same answer.
func TestResolveRace(t *testing.T) { onEachStore(t, oneDecisionAmongMany) }

func oneDecisionAmongMany(t *testing.T, open func(testing.TB) *env) {
	ctx := context.Background()
	w := open(t)
	w.loop.Model = &asked{tool: "send"}
	v := start(t, w, "tell bob")
	var mu sync.Mutex
	won := map[run.Decision]int{}
	var wg sync.WaitGroup
	for i := range 100 {
		d := run.ApproveOnce
		if i%2 == 1 {
			d = run.Reject
		}
		wg.Go(func() {
			_, err := w.loop.Resolve(ctx,
				approval.Resolution{UID: "ana", ApprovalID: run.ApprovalID(v.RunID, 1), Decision: d})
			if err != nil && !fault.Is(err, fault.Policy, fault.CodeAlreadyResolved) {
				t.Error(err)
			}
			if err == nil {
				mu.Lock()
				won[d]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if len(won) != 1 {
		t.Fatalf("both decisions were taken: %v", won)
	}
	deliver(t, w)
	if want := 1 - min(1, won[run.Reject]); len(w.effects) != want {
		t.Fatalf("done %d times, want %d", len(w.effects), want)
	}
}

// TestHandOver gives a function no time for another step. The run is handed over through the queue, and ends in the
// same way.
func TestHandOver(t *testing.T) {
	w := newEnv(t)
	w.loop.Model = &asked{tool: "lookup"}
	w.assistant().Limits.ModelTimeout = time.Hour
	ctx, cancel := context.WithTimeout(context.Background(), await.Most)
	defer cancel()
	v, err := w.loop.Start(ctx, loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "look it up"})
	if err != nil {
		t.Fatal(err)
	}
	if v.Status == run.Completed || len(w.queue) != 1 {
		t.Fatalf("%s with %d messages queued, want a hand-over", v.Status, len(w.queue))
	}
	if err := w.deliver(context.Background()); err != nil {
		t.Fatal(err)
	}
	got, _, err := w.loop.Get(context.Background(), "ana", v.RunID)
	if err != nil || got.Status != run.Completed {
		t.Fatalf("%v, %+v; want got.Status %v", err, got, run.Completed)
	}
}

// TestStoreAnswersLost lets the store carry out each commit and then loses the answer. Nothing is done twice because of
// this.
func TestStoreAnswersLost(t *testing.T) {
	for first := range 2 {
		t.Run(fmt.Sprintf("from commit %d", first+1), func(t *testing.T) { answersLost(t, first) })
		t.Run(fmt.Sprintf("allowed, from commit %d", first+1), func(t *testing.T) { answersOfAllowedLost(t, first) })
	}
}

func answersOfAllowedLost(t *testing.T, first int) {
	ctx := context.Background()
	w := newEnv(t)
	alwaysAllow(t, w, "send")
	w.loop.Store = forgetful(w.store, first)
	v, err := w.loop.Start(ctx, loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "tell bob"})
	if err != nil || v.Status != run.Completed || len(w.effects) != 1 {
		t.Fatalf("%v, %+v, done %d times", err, v, len(w.effects))
	}
}

func answersLost(t *testing.T, first int) {
	ctx := context.Background()
	w := newEnv(t)
	lossy := forgetful(w.store, first)
	w.loop.Store, w.loop.Model = lossy, &asked{tool: "send"}
	v := start(t, w, "tell bob")
	approve(t, w, v, 1)
	deliver(t, w)
	got, events, err := w.loop.Get(ctx, "ana", v.RunID)
	if err != nil || got.Status != run.Completed || len(w.effects) != 1 {
		t.Fatalf("%v, %+v, done %d times", err, got, len(w.effects))
	}
	if _, err := run.Fold(events); err != nil {
		t.Fatal(err)
	}
	page, err := w.rec.Messages(ctx, "ana", v.ThreadID, 1<<40, 100)
	if err != nil || len(page.Messages) != 3 {
		t.Fatalf("%v: %d messages, want the prompt, the request and the answer: %+v", err, len(page.Messages),
			page.Messages)
	}
}

// forgetful returns a store that commits and then reports failure every other time, beginning with the first or the
// second commit.
func forgetful(st store.Store, first int) *faulty.Store {
	return faulty.Wrap(st, faulty.Commits(faulty.Each(func(n int) bool { return (first+n)%2 == 1 }, faulty.Lost)))
}

// TestStoreDownAfterTheEffect lets the store fail for a while just before the outcome is recorded. The process waits
// for it, because no other process knows the outcome.
func TestStoreDownAfterTheEffect(t *testing.T) {
	ctx := context.Background()
	w := newEnv(t)
	w.loop.Store, w.loop.Model = outage(w, 25), &asked{tool: "send"}
	v := start(t, w, "tell bob")
	approve(t, w, v, 1)
	deliver(t, w)
	got, _, err := w.loop.Get(ctx, "ana", v.RunID)
	if err != nil || got.Status != run.Completed || len(w.effects) != 1 {
		t.Fatalf("%v, %+v, done %d times", err, got, len(w.effects))
	}
}

// outage returns a store that does not answer for a number of calls after an effect took place.
func outage(w *env, times int) *faulty.Store {
	return faulty.Wrap(w.store, faulty.Of(func(c *faulty.Call) bool {
		down := c.Method != faulty.Query && len(w.effects) > 0 && times > 0
		if down {
			times--
		}
		return down
	}, faulty.Down))
}
