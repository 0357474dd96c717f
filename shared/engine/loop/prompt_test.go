package loop_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

// stalled returns a store that stops at the first commit for good. Each call ends without an answer after eight
// seconds, as with Firestore, or with its context.
func stalled(st store.Store) *faulty.Store {
	still := false
	return faulty.Wrap(st, func(ctx context.Context, c *faulty.Call, next faulty.Next) error {
		if still = still || c.Method == faulty.Commit; !still {
			return next(ctx)
		}
		select {
		case <-time.After(8 * time.Second):
			return store.ErrUnavailable
		case <-ctx.Done():
			return store.Interrupted(string(c.Method), ctx.Err())
		}
	})
}

// A client whose request is in progress when the store stops gets its answer within ten seconds, as does every later
// request.
func TestAnswersDuringStoreOutage(t *testing.T) {
	asks := map[string]func(l *loop.Loop, waiting *run.View) error{
		"start": func(l *loop.Loop, _ *run.View) error {
			_, err := l.Start(context.Background(), loop.StartRequest{UID: "bea"}, loop.Prompt{Text: "hello"})
			return err
		},
		"resolve": func(l *loop.Loop, v *run.View) error {
			_, err := l.Resolve(context.Background(),
				approval.Resolution{UID: "ana", ApprovalID: run.ApprovalID(v.RunID, 1), Decision: run.ApproveOnce})
			return err
		},
		"cancel": func(l *loop.Loop, v *run.View) error {
			_, err := l.Cancel(context.Background(), "ana", v.RunID)
			return err
		},
	}
	for name, ask := range asks {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newEnv(t)
				w.loop.Model = &asked{tool: "send"}
				v, err := w.loop.Start(context.Background(), loop.StartRequest{UID: "ana"},
					loop.Prompt{Text: "tell bob"})
				if err != nil {
					t.Fatal(err)
				}
				w.loop.Store = stalled(w.store)
				start := time.Now()
				err = ask(w.loop, v)
				if took := time.Since(start); took >= 10*time.Second ||
					!fault.Is(err, fault.Tool, fault.CodeStoreUnavailable) {
					t.Errorf("answered %v after %v", err, took)
				}
			})
		})
	}
}
