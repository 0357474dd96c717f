package load

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/countersign-run/countersign/shared/base/wait"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

const (
	deltaEvery   = 50 * time.Millisecond
	longestWords = 10 * time.Second // longest answer; a model call may take a minute in all
)

// streams returns L7, L14 and L15: a constant number of streams is open, and a new one replaces each that ends.
func streams(by face) func(ctx context.Context, g *env, r *Report) {
	return func(ctx context.Context, g *env, r *Report) { g.streams(ctx, by, r) }
}

func (g *env) streams(ctx context.Context, by face, r *Report) {
	p := g.begin(ctx)
	base := calm(ctx, p)
	length := min(longestWords, g.For)
	deltas := int(length / deltaEvery)
	g.SetModel(func(fakegemini.Request) fakegemini.Turn {
		return fakegemini.Turn{Text: strings.Repeat("word ", deltas), Pieces: deltas, Delay: deltaEvery}
	})
	var first series
	var got, begun, ended atomic.Int64
	watched, sampled := g.watch(r), sample(ctx, p)
	end := time.Now().Add(g.For)
	var clients sync.WaitGroup
	for i := range g.Clients {
		uid, late := fmt.Sprintf("user-%d", i), length*time.Duration(i)/time.Duration(g.Clients)
		clients.Go(func() {
			for err := wait.For(ctx, late); err == nil && time.Now().Before(end); ended.Add(1) {
				var n int
				if n, err = g.stream(ctx, by, uid, fmt.Sprint("stream-", begun.Add(1)), &first); err != nil {
					g.failed.add(err.Error())
				}
				got.Add(int64(n))
			}
		})
	}
	clients.Wait()
	took := watched()
	sampled.stop()
	after := rest(ctx, p, base)
	r.Figures["streams"], r.Figures["deltasPerSecond"], r.Figures["firstByteMs"] = ended.Load(),
		round(float64(got.Load())/took.Seconds()), first.summary()
	r.Figures["goroutines"] = map[string]int{"before": base, "after": after}
	r.atMost("first byte p95 ms", first.ms(0.95), 200)
	r.atMost("RSS of the worker MiB", sampled.max(), 300)
	r.atMost("goroutines left", float64(after-base), 5)
	r.atMost("errors", float64(g.errors.sum()+g.failed.sum()), 0)
}

// stream follows one run to the end of its stream and counts the deltas.
func (g *env) stream(ctx context.Context, by face, uid, id string, first *series) (deltas int, err error) {
	token, err := g.token(ctx, uid)
	if err != nil {
		return 0, err
	}
	start := time.Now()
	last, unread := "", error(nil)
	a, err := testkit.Stream(ctx, nil, g.base, token, "POST", by.path, by.asks(id), func(l testkit.Line) bool {
		if last == "" {
			first.since(start)
		}
		last = l.Type
		if last == by.delta {
			deltas++
		}
		runID := ""
		if runID, unread = by.run(l); runID != "" {
			g.ledger.asked(runID, "")
		}
		return unread == nil
	})
	if err = errors.Join(err, unread); err == nil && last != by.ends {
		err = fmt.Errorf("a stream returned %d and ended in %q", a.HTTP, last)
	}
	return deltas, err
}
