package loop_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/wait"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/store/memory"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// TestExpiryOfWatchedRun checks that a watched run is moved as soon as its approval expires, without a sweep.
func TestExpiryOfWatchedRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &env{t: t, ticks: time.Now}
		w.on(memory.New(time.Now), func(time.Duration) {})
		w.model.Then(script.Turn{Calls: []script.Call{{Name: "send",
			Args: map[string]any{"to": []string{"bob@x.org"}, "text": "ten"}}}}, script.Turn{Text: "Nobody answered."})
		r, err := w.loop.Start(t.Context(), loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "tell bob"})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan time.Time, 1)
		go func() {
			for watched, err := range w.loop.Watch(ctx, "ana", r.RunID) {
				if err == nil && watched.Ended() {
					ended <- time.Now()
				}
			}
		}()
		asked := time.Now()
		expires := w.open("ana")[0].ExpiresAt
		wait.For(ctx, expires.Sub(asked)+time.Second)
		synctest.Wait()
		if err := w.deliver(ctx); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		select {
		case at := <-ended:
			if late := at.Sub(expires); late > time.Second {
				t.Errorf("the end is seen %v after the expiry", late)
			}
		default:
			v, _ := w.see(t, r.RunID)
			t.Errorf("nobody was woken; the run is %s, want %s", v.Status, run.Failed)
		}
		cancel()
		synctest.Wait()
	})
}
