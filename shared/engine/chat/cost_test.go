package chat_test

import (
	"context"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/engine/chat"
	"github.com/countersign-run/countersign/shared/engine/records"
	"github.com/countersign-run/countersign/shared/store/memory"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// A message costs one read and two commits of the user's document: one commit before the model call, so that concurrent
// messages cannot all be the last permitted one, and one commit with the usage. Without limits it costs only the read,
// because the user may be disabled.
func TestMessageCost(t *testing.T) {
	type trips struct{ reads, commits int }
	for limits, want := range map[run.Limits]trips{{}: {1, 0},
		{RunsPerMinute: 2, CallsPerDay: 100, TokensPerDay: 1000}: {1, 2}} {
		w := newEnv(t, script.Turn{Text: "Hello."})
		counted := faulty.Count(memory.New(func() time.Time { return w.now }))
		w.chat.Ledger = &records.Records{Store: counted, Now: func() time.Time { return w.now }}
		w.core.UserLimits = limits
		if _, err := w.chat.Send(context.Background(), chat.Request{UID: alice, Message: "Hi."}, nil); err != nil {
			t.Fatal(err)
		}
		if c := counted.Take(); c.Get.Trips != want.reads || c.Commit.Trips != want.commits || c.Get.Docs > 1 ||
			c.Commit.Docs != want.commits {
			t.Errorf("%+v: %+v", limits, c)
		}
	}
}

// A turn on a terminal costs one read more than a message: the read of the terminal and of the user, who may be
// disabled. The run of a command in the core costs as much as any single call. While the command waits, each further
// request reads it once. No cost grows with the conversation.
func TestTurnCost(t *testing.T) {
	w := newTerminalEnv(t, calls("a"), script.Turn{Text: "Done."})
	core, own := faulty.Count(w.core.Store), faulty.Count(w.core.Store)
	w.core.Store = core
	w.core.UserLimits = run.Limits{RunsPerMinute: 20, CallsPerDay: 100, TokensPerDay: 1000}
	w.chat.Ledger = &records.Records{Store: own, Now: func() time.Time { return w.now }}
	costs := func(name string, reads, read, commits, counted int) {
		t.Helper()
		c, u := core.Take(), own.Take()
		if c.Get.Trips != reads || c.Get.Docs != read || c.Commit.Trips != commits || u.Commit.Trips != counted ||
			c.Query.Trips != 0 {
			t.Errorf("%s: %+v and of the user %+v", name, c, u)
		}
	}
	core.Take()
	first := w.turn(says("Do it"))
	costs("a turn with a command", 2, 8, 1, 2)
	waits := w.turn(first.History)
	costs("while it waits", 3, 4, 0, 0)
	w.decide(waits.Calls[0].Approval, run.ApproveOnce)
	core.Take()
	own.Take()
	w.turn(waits.History)
	costs("when it is done", 3, 4, 0, 2)
}
