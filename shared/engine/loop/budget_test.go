package loop_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// spender is a model that always calls for more effects, atOnce at a time. Its answer depends only on its request, and
// its use of tokens grows with the request.
type spender struct{ atOnce int }

func (s *spender) Name() string { return "spender" }

func (s *spender) Generate(_ context.Context, req model.Request, _ func(string)) (*model.Reply, error) {
	n := 0
	for _, c := range req.Contents {
		n += strings.Count(string(c), `"functionResponse"`)
	}
	r := &model.Reply{Finish: "STOP", Model: "spender-001",
		Usage: model.Usage{Prompt: 100 + 70*n, Cached: 30 * n, Output: 15, Thoughts: 5, Total: 120 + 70*n}}
	var parts []string
	for i := range s.atOnce {
		c := model.Call{ID: fmt.Sprintf("c%d", n+i), Name: "draft",
			Args: args([]string{"bob@x.org"}, fmt.Sprintf("no. %d", n+i+1))}
		signed := ""
		if i == 0 {
			signed = `,"thoughtSignature":"c2ln"`
		}
		parts = append(parts, fmt.Sprintf(`{"functionCall":{"id":%q,"name":"draft","args":%s}%s}`, c.ID, c.Args,
			signed))
		r.Calls = append(r.Calls, c)
	}
	r.Content = json.RawMessage(`{"role":"model","parts":[` + strings.Join(parts, ",") + `]}`)
	return r, nil
}

// budgets are runs that reach a limit, with their expected records.
var budgets = map[string]struct {
	budget  run.Budget
	atOnce  int
	effects policy.Effects
	order   registry.Order
	spent   spent
}{
	// 120, 190 and 260 tokens; the next request needs about 300, and its answer may need 20
	"tokens": {run.Budget{Tokens: 850}, 1, policy.AutoApprove, "",
		spent{overrun: run.Overrun{Limit: "tokens", Used: 570, Max: 850}, turns: 3, cost: 0, done: 3}},
	"tokens, each effect approved": {run.Budget{Tokens: 600}, 1, policy.AskEffects, "",
		spent{overrun: run.Overrun{Limit: "tokens", Used: 570, Max: 600}, turns: 3, cost: 0, done: 3}},
	"too few tokens for the first request": {run.Budget{Tokens: 50}, 1, policy.AutoApprove, "",
		spent{overrun: run.Overrun{Limit: "tokens", Used: 0, Max: 50}}},
	// 110 and 165; the next request needs about 240, and its answer may need 12
	"money": {run.Budget{Money: 500, Prices: map[string]run.Price{"spender": {Input: 1_000_000, Cached: 500_000,
		Output: 600_000, Thoughts: 200_000}}}, 1, policy.AutoApprove, "",
		spent{overrun: run.Overrun{Limit: "money", Used: 275, Max: 500}, turns: 2, cost: 275, done: 2}},
	"effects": {run.Budget{Effects: 2}, 1, policy.AutoApprove, "",
		spent{overrun: run.Overrun{Limit: "effects", Used: 2, Max: 2}, turns: 3, done: 2}},
	"effects, of two at once": {run.Budget{Effects: 3}, 2, policy.AutoApprove, registry.Strict,
		spent{overrun: run.Overrun{Limit: "effects", Used: 3, Max: 3}, turns: 2, done: 3}},
	"effects, of three that are approved": {run.Budget{Effects: 2}, 3, policy.AskEffects, "",
		spent{overrun: run.Overrun{Limit: "effects", Used: 2, Max: 2}, turns: 1, done: 2}},
	"effects, of three that are approved in their order": {run.Budget{Effects: 2}, 3, policy.AskEffects,
		registry.Strict, spent{overrun: run.Overrun{Limit: "effects", Used: 2, Max: 2}, turns: 1, done: 2}},
}

// spent is the usage of a run, by its events and by the provider.
type spent struct {
	overrun run.Overrun
	turns   int
	tokens  int
	cost    int64
	done    int
}

// TestBudgetLimits ends a run at each limit, and kills its process before and after each commit. The run ends with the
// same error and the same sums, whatever process advances it.
func TestBudgetLimits(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		for name, tt := range budgets {
			if strings.Contains(t.Name(), "firestore") && tt.atOnce != 3 { // the longest two; they take seconds there
				continue
			}
			tt.spent.tokens = []int{0, 120, 310, 570}[tt.spent.turns]
			if tt.atOnce == 2 {
				tt.spent.tokens = 120 + 260
			}
			whole := true
			for n := 1; whole || n%2 == 0; n++ { // before and after each commit, until there is none left
				t.Run(fmt.Sprintf("%s/%d", name, n), func(t *testing.T) {
					w := open(t)
					w.loop.Model = &spender{tt.atOnce}
					agent := w.assistant()
					agent.Effects, agent.Order, agent.Model.MaxOutputTokens = tt.effects, tt.order, 20
					agent.Limits.Budget, agent.Limits.ModelCalls = tt.budget, 50
					agent.OnReject = registry.RejectContinues
					w.loop.Store = mortal(w.store, (n+1)/2, n%2 == 0)
					died := w.spend(t)
					whole = died
					if got := w.spentBy(t, run.KeyedRunID("ana", "k1")); got != tt.spent {
						t.Errorf("%+v, want %+v", got, tt.spent)
					}
				})
			}
		}
	})
}

// spend advances the run to its end in several processes (the first one may die) and approves every waiting call.
func (w *env) spend(t *testing.T) (died bool) {
	start := loop.StartRequest{UID: "ana", Key: "k1", BodyHash: "h"}
	for range 20 {
		gone, err := mortally(func() error { return w.liveAll(start, "write") })
		if err != nil && !unit.Held(err) {
			t.Fatal(err)
		}
		died = died || gone
		v, _, err := w.loop.Get(t.Context(), "ana", run.KeyedRunID("ana", "k1"))
		if err == nil && (v.Status == run.Failed || v.Status == run.Completed) {
			return died
		}
		w.tick(3 * time.Minute)
	}
	t.Fatal("the run does not end")
	return died
}

// liveAll is one process: it starts the run, or finds it started, and carries out and approves its calls.
func (w *env) liveAll(start loop.StartRequest, prompt string) error {
	ctx := context.Background()
	if _, err := w.loop.Start(ctx, start, loop.Prompt{Text: prompt}); err != nil {
		return err
	}
	for range 6 {
		if _, err := w.loop.Sweep(ctx); err != nil {
			return err
		}
		if err := w.deliver(ctx); err != nil {
			return err
		}
		for _, a := range w.open("ana") {
			_, err := w.loop.Resolve(ctx,
				approval.Resolution{UID: "ana", ApprovalID: a.ApprovalID, Decision: run.ApproveOnce})
			if err != nil && !fault.Is(err, fault.Policy, fault.CodeAlreadyResolved) {
				return err
			}
		}
	}
	return nil
}

// spentBy returns the recorded usage of the run, and checks the rest of its record.
func (w *env) spentBy(t *testing.T, runID string) spent {
	t.Helper()
	v, events, err := w.loop.Get(t.Context(), "ana", runID)
	if err != nil {
		t.Fatal(err)
	}
	s, err := run.Fold(events)
	if err != nil {
		t.Fatal(err)
	}
	if v.Status != run.Failed || v.ErrorCode != fault.Policy || v.ErrorReason != run.CodeRunBudget ||
		v.Overrun == nil || v.Cost != s.Cost {
		t.Fatalf("the run is %+v", v)
	}
	if s.Effects() != len(w.effects) || len(slices.Compact(slices.Sorted(slices.Values(w.effects)))) != s.Effects() {
		t.Errorf("%d effects were counted, and done were %v", s.Effects(), w.effects)
	}
	if waiting := w.open("ana"); len(waiting) > 0 || w.user().OpenApprovals() != 0 {
		t.Errorf("approvals are left: %+v", waiting)
	}
	for _, a := range s.Actions {
		if a.Status != run.ActionCompleted && (a.Error == nil || a.Error.Code != run.CodeRunBudget) {
			t.Errorf("a call is %s: %+v", a.Status, a.Error)
		}
	}
	return spent{*v.Overrun, len(s.Turns), s.Tokens, s.Cost, len(w.effects)}
}

// TestBudgetWithoutPrice checks that a model without a known price gets no request if the run's money is limited.
func TestBudgetWithoutPrice(t *testing.T) {
	w := newEnv(t)
	w.assistant().Limits.Budget = run.Budget{Money: 1 << 40, Prices: map[string]run.Price{"another": {Input: 1}}}
	v, err := w.loop.Start(t.Context(), loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "hello"})
	if err != nil || v.Status != run.Failed || v.ErrorReason != run.CodeRunBudget || len(w.model.Requests()) != 0 {
		t.Errorf("%v %+v, and the model got %v", err, v, w.model.Requests())
	}
}

// countedSumming is summing with a usage in its answers.
type countedSumming struct{ summing }

func (m *countedSumming) Name() string { return "summing" }

func (m *countedSumming) Generate(ctx context.Context, req model.Request, delta func(string)) (*model.Reply, error) {
	r, err := m.summing.Generate(ctx, req, delta)
	if err != nil {
		return nil, err
	}
	n := len(req.System)
	for _, c := range req.Contents {
		n += len(c)
	}
	r.Usage = model.Usage{Prompt: n / 4, Output: len(r.Content) / 4, Total: n/4 + len(r.Content)/4}
	return r, nil
}

// TestBudgetWithSummary has a run that compresses its conversation, and ends because the summary used the tokens that
// the answer would need. The process dies at each commit in turn.
func TestBudgetWithSummary(t *testing.T) {
	var uncut *spent
	died := false
	for n := 0; n < 2 || died || n%2 == 0; n++ { // 0: none; then before and after each commit
		w := &talk{env: compressing(newEnv(t))}
		w.loop.Model, w.assistant().Compression.Window = &countedSumming{}, 8_000
		agent := w.assistant()
		agent.OnReject, agent.Limits.ModelCalls = registry.RejectContinues, 50
		for i := range 4 {
			v, err := w.loop.Start(t.Context(), loop.StartRequest{UID: "ana", ThreadID: w.thread},
				loop.Prompt{Text: fmt.Sprintf("question %d", i)})
			if err != nil || v.Status != run.Completed {
				t.Fatalf("%v %+v; want v.Status %v", err, v, run.Completed)
			}
			w.thread = v.ThreadID
		}
		agent.Limits.Budget = run.Budget{Money: 5_500, Prices: map[string]run.Price{"summing": {Input: 1_000_000}}}
		if n > 0 {
			w.loop.Store = mortal(w.store, (n+1)/2, n%2 == 0)
		}
		died = false
		start := loop.StartRequest{UID: "ana", ThreadID: w.thread, Key: "k1", BodyHash: "h"}
		v := &run.View{}
		for range 5 {
			gone, err := mortally(func() error { return w.liveAll(start, "question 3") })
			if err != nil && !unit.Held(err) {
				t.Fatal(err)
			}
			died = died || gone
			if v, _, err = w.loop.Get(t.Context(), "ana", run.KeyedRunID("ana", "k1")); err == nil &&
				v.Status == run.Failed {
				break
			}
			w.tick(3 * time.Minute)
		}
		all := w.compressions(v)
		if len(all) != 1 || all[0].Summary == "" || all[0].Cost == 0 {
			t.Fatalf("%d: %+v, %+v", n, all, v)
		}
		got := w.spentBy(t, run.KeyedRunID("ana", "k1"))
		if uncut == nil {
			uncut = &got
			if u := all[0].Usage; got.tokens < u.Total || got.cost < int64(u.Prompt) || got.turns > 1 {
				t.Errorf("%+v, and the summary took %+v", got, u)
			}
		}
		if got != *uncut {
			t.Errorf("%d: %+v, and uncut %+v", n, got, *uncut)
		}
	}
}
