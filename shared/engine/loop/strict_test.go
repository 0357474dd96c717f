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
	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// TestStrictKilledAtEveryCommit kills the process before and after each commit of a strict turn of three effects. In
// half of the trials the user rejects the second one. Whatever was lost, nothing is done twice, out of order, or after
// the rejection.
func TestStrictKilledAtEveryCommit(t *testing.T) { onEachStore(t, strictKilledAtEveryCommit) }

func strictKilledAtEveryCommit(t *testing.T, open func(testing.TB) *env) {
	for no, commits := range map[string]int{"": 13, "two": 9} {
		for _, after := range []bool{false, true} {
			for n := 1; n <= commits; n++ {
				t.Run(fmt.Sprintf("reject=%q/after=%t/%d", no, after, n), func(t *testing.T) {
					strictKilledAt(t, open(t), no, n, after)
				})
			}
		}
	}
}

func strictKilledAt(t *testing.T, w *env, no string, n int, after bool) {
	ctx, texts := context.Background(), []string{"one", "two", "three"}
	w.assistant().Order, w.assistant().OnReject = registry.Strict, registry.RejectContinues
	w.loop.Store = mortal(w.store, n, after)
	w.loop.Model = &plans{texts}
	start := loop.StartRequest{UID: "ana", Key: "k1", BodyHash: "h"}
	runID := run.KeyedRunID("ana", "k1")
	died := 0
	for i := 0; ; i++ {
		gone, err := mortally(func() error { return w.live(ctx, start, no) })
		if err != nil && !unit.Held(err) {
			t.Fatal(err)
		}
		if gone {
			died++
		}
		v, _, err := w.loop.Get(ctx, "ana", runID)
		if err == nil && v.Status == run.Completed {
			break
		}
		if i == 20 {
			t.Fatalf("%v, and the run is %+v", err, v)
		}
		w.tick(3 * time.Minute)
	}
	if died != 1 {
		t.Errorf("the process died %d times", died)
	}
	var want []string
	for _, text := range texts {
		if text == no {
			break
		}
		want = append(want, "send bob@x.org: "+text)
	}
	if !slices.Equal(w.effects, want) {
		t.Errorf("done: %v; want %v", w.effects, want)
	}
	if waiting := w.open("ana"); len(waiting) != 0 || w.user().OpenApprovals() != 0 {
		t.Errorf("approvals are left: %+v", waiting)
	}
}

// plans is a model that calls for a draft of each text at once, and accepts every result.
type plans struct{ texts []string }

func (p *plans) Name() string { return "plans" }

func (p *plans) Generate(_ context.Context, req model.Request, _ func(string)) (*model.Reply, error) {
	if strings.Contains(string(req.Contents[len(req.Contents)-1]), "functionResponse") {
		return &model.Reply{Content: json.RawMessage(`{"role":"model","parts":[{"text":"Done."}]}`), Text: "Done.",
			Finish: "STOP", Model: "plans"}, nil
	}
	var parts []string
	reply := &model.Reply{Finish: "STOP", Model: "plans"}
	for i, text := range p.texts {
		call := model.Call{ID: fmt.Sprintf("c%d", i), Name: "draft", Args: args([]string{"bob@x.org"}, text)}
		parts = append(parts, fmt.Sprintf(`{"functionCall":{"id":%q,"name":"draft","args":%s}}`, call.ID, call.Args))
		reply.Calls = append(reply.Calls, call)
	}
	parts[0] = strings.TrimSuffix(parts[0], "}") + `,"thoughtSignature":"c2ln"}`
	reply.Content = json.RawMessage(`{"role":"model","parts":[` + strings.Join(parts, ",") + `]}`)
	return reply, nil
}

// live is one process. It starts the run, or finds it started, decides the waiting approvals one after the other, and
// carries out the calls.
func (w *env) live(ctx context.Context, req loop.StartRequest, no string) error {
	if _, err := w.loop.Start(ctx, req, loop.Prompt{Text: "write three"}); err != nil {
		return err
	}
	for range 4 {
		if _, err := w.loop.Sweep(ctx); err != nil {
			return err
		}
		if err := w.deliver(ctx); err != nil {
			return err
		}
		waiting := w.open("ana")
		if len(waiting) > 1 {
			w.t.Fatalf("%d approvals wait at once", len(waiting))
		}
		for _, a := range waiting {
			r := approval.Resolution{UID: "ana", ApprovalID: a.ApprovalID, Decision: run.ApproveOnce}
			if no != "" && a.Preview.Title == `Send "`+no+`" to bob@x.org` {
				r.Decision = run.Reject
			}
			if _, err := w.loop.Resolve(ctx, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// TestStrictApprovalOfCurrentAccount links another account between two calls of a strict turn. The card of the second
// call names the account that is linked at its turn, and is not stale.
func TestStrictApprovalOfCurrentAccount(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		ctx, w := context.Background(), open(t)
		w.account = func() (tool.Place, error) { // another account is linked after the first call
			n := min(len(w.effects), 1)
			return tool.Place{Label: "From", Name: fmt.Sprintf("ana%d@example.com", n), ID: fmt.Sprint(n)}, nil
		}
		w.assistant().Order = registry.Strict
		w.loop.Model = &plans{[]string{"one", "two"}}
		v := start(t, w, "write two")
		for i := range 2 {
			waiting := w.open("ana")
			if len(waiting) != 1 || waiting[0].Preview.Fields[0].Value != fmt.Sprintf("ana%d@example.com", i) {
				t.Fatalf("card %d: %+v", i+1, waiting)
			}
			if _, err := w.loop.Resolve(ctx, approval.Resolution{UID: "ana", ApprovalID: waiting[0].ApprovalID,
				ArgsHash: waiting[0].ArgsHash, Decision: run.ApproveOnce}); err != nil {
				t.Fatal(err)
			}
			deliver(t, w)
		}
		v, _, err := w.loop.Get(ctx, "ana", v.RunID)
		if err != nil || v.Status != run.Completed || len(w.effects) != 2 {
			t.Errorf("%v %+v: %v; want v.Status %v, len(w.effects) 2", err, v, w.effects, run.Completed)
		}
	})
}
