package loop_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/countersign-run/countersign/shared/agent"
	"github.com/countersign-run/countersign/shared/loop"
	"github.com/countersign-run/countersign/shared/model"
	"github.com/countersign-run/countersign/shared/store/storetest"
)

// TestCost counts what the store is asked for. The numbers are a promise: a round trip or a document more wants a reason.
func TestCost(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	counter := storetest.Count(w.store)
	w.loop.Store = counter
	check := func(what string, getTrips, read, commits, written int) {
		t.Helper()
		c := counter.Take()
		got := [5]int{c.Get.Trips, c.Get.Docs, c.Commit.Trips, c.Commit.Docs, c.Query.Trips}
		if want := [5]int{getTrips, read, commits, written, 0}; got != want {
			t.Errorf("%s: %v reads of %v documents, %v commits of %v documents, %v queries; want %v", what, got[0], got[1], got[2], got[3], got[4], want)
		}
	}
	ask := func(thread string) *agent.RunView {
		t.Helper()
		v, err := w.loop.Start(ctx, loop.Ask{UID: "ana", Prompt: "do it", ThreadID: thread}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	resolve := func(v *agent.RunView, d agent.Decision) {
		t.Helper()
		if _, err := w.loop.Resolve(ctx, loop.Resolution{UID: "ana", ApprovalID: agent.ApprovalID(v.RunID, 1), Decision: d}); err != nil {
			t.Fatal(err)
		}
	}
	deliver := func() {
		t.Helper()
		if err := w.deliver(ctx); err != nil {
			t.Fatal(err)
		}
	}

	w.loop.Model = &plain{}
	first := ask("")
	check("a plain run on a new thread", 1, 1, 2, 4) // the user; run and thread, twice
	ask(first.ThreadID)
	check("a plain run on a thread that is there", 1, 2, 2, 4)

	w.loop.Model = &asked{tool: "lookup"}
	ask("")
	check("a run with a reading tool", 1, 1, 4, 6) // the turn and the tool's outcome: the run alone

	w.loop.Model = &asked{tool: "send"}
	v := ask("")
	check("a run that stops for approval", 1, 1, 2, 7) // run, thread; run, thread, approval, audit, user
	resolve(v, agent.ApproveAlways)
	check("approve", 1, 3, 1, 4) // run, approval, user, audit
	deliver()
	check("resume, with a tool that needs no handle", 2, 3, 3, 6) // intent: run, audit; outcome: run, audit; end: run, thread
	ask("")
	check("a run with an effect that is always allowed", 1, 1, 4, 9) // the turn and the intent are one commit; the user, whose list must still be the same

	w.loop.Model = &asked{tool: "draft"}
	v = ask("")
	counter.Take()
	resolve(v, agent.ApproveOnce)
	counter.Take()
	deliver()
	check("resume, with a tool that makes a handle", 2, 3, 4, 7)

	v = ask("")
	counter.Take()
	resolve(v, agent.Reject)
	check("reject", 2, 4, 1, 5)
}

// plain is a model that answers in words.
type plain struct{}

func (*plain) Name() string { return "plain" }

func (*plain) Generate(context.Context, model.Request, func(string)) (*model.Reply, error) {
	return &model.Reply{Content: json.RawMessage(`{"role":"model","parts":[{"text":"Hello."}]}`), Text: "Hello.", Finish: "STOP", Model: "plain"}, nil
}
