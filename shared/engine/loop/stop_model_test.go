package loop_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/store/memory"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// onAllStores is onEachStore with the store in memory in addition.
func onAllStores(t *testing.T, test func(t *testing.T, open func(testing.TB) *env)) {
	t.Run("memory", func(t *testing.T) {
		test(t, func(t testing.TB) *env {
			w := &env{t: t, now: began}
			return w.on(memory.New(w.clock), func(time.Duration) {})
		})
	})
	onEachStore(t, test)
}

// TestCancelDuringHangingModelCall lets another process cancel a run with a model that never answers, and one with a
// search that never does. The waiting process ends the call and the run, without a change of its clock.
func TestCancelDuringHangingModelCall(t *testing.T) { onAllStores(t, stopEndsWhatIsAsked) }

func stopEndsWhatIsAsked(t *testing.T, open func(testing.TB) *env) {
	for name, search := range map[string]bool{"the model": false, "a tool that looks": true} {
		t.Run(name, func(t *testing.T) {
			w, asked := open(t), make(chan struct{})
			never := func(ctx context.Context) error {
				close(asked)
				<-ctx.Done()
				return ctx.Err()
			}
			w.loop.Model = thinking{do: never}
			if search {
				w.model.Restart(script.Turn{Calls: []script.Call{{Name: "search", Args: json.RawMessage(`{}`)}}})
				w.loop.Model = w.model
				w.loop.Tools["search"] = tool.Define(tool.Def[struct{}, struct{}]{Name: "search",
					Description: "Searches.", Interruptible: true,
					Execute: func(ctx context.Context, _ tool.Call, _ struct{}) (struct{}, error) {
						return struct{}{}, never(ctx)
					}})
			}
			ended := make(chan *run.View, 1)
			go func() {
				v, err := w.start()
				if err != nil {
					t.Error(err)
				}
				ended <- v
			}()
			select {
			case <-asked:
			case v := <-ended:
				t.Fatalf("nothing was asked: %+v", v)
			}
			other := w.process()
			ids := w.waiting()
			if len(ids) != 1 {
				t.Fatalf("under way are %q", ids)
			}
			if _, err := other.Cancel(t.Context(), "ana", ids[0]); err != nil {
				t.Fatal(err)
			}
			if v := <-ended; v == nil || v.ErrorReason != run.CodeCancelled {
				t.Errorf("it ended as %+v", v)
			}
		})
	}
}
