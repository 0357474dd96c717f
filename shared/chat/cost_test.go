package chat_test

import (
	"context"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/chat"
	"github.com/countersign-run/countersign/shared/records"
	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/store/memory"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// A message costs one read and two commits of its user's document: one before the model is called, so that concurrent
// messages cannot all be the last, and one with what it used. Without limits it costs the read, since the user may be
// disabled.
func TestWhatAMessageCosts(t *testing.T) {
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
