package load

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/base/wait"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// slowModel is L8: all clients wait for a model that needs 20 seconds, and other requests must not become slower.
func slowModel(ctx context.Context, g *env, r *Report) {
	g.begin(ctx)
	// The fake pauses before the answer, before its one piece, and before its end.
	third := min(20*time.Second, g.For) / 3
	g.SetModel(func(fakegemini.Request) fakegemini.Turn {
		return fakegemini.Turn{Text: "At last.", Pieces: 1, Delay: third}
	})
	var runs, health, pending series
	stop := g.watch(r)
	probing, done := context.WithCancel(ctx)
	var probe sync.WaitGroup
	probe.Go(func() {
		for i := 0; wait.For(probing, 20*time.Millisecond) == nil; i++ {
			uid := fmt.Sprintf("user-%d", i%g.Clients)
			for path, s := range map[string]*series{"/health": &health, "/api/agent/approvals/pending": &pending} {
				start := time.Now()
				if _, err := g.send(ctx, uid, "GET", path, nil); err == nil {
					s.since(start)
				}
			}
		}
	})
	g.crowd(ctx, func(ctx context.Context, uid string) error {
		took, err := g.plain(ctx, uid)
		runs.add(took)
		return err
	})
	done()
	probe.Wait()
	stop()
	r.Figures["runMs"], r.Figures["healthMs"], r.Figures["pendingMs"] = runs.summary(), health.summary(),
		pending.summary()
	r.atMost("health p99 ms", health.ms(0.99), 200)
	r.atMost("pending p99 ms", pending.ms(0.99), 200)
	r.atMost("errors", float64(g.errors.sum()+g.failed.sum()), 0)
}
