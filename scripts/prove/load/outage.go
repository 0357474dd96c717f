package load

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/base/wait"
)

const (
	outageEvery = time.Minute
	outageLasts = 15 * time.Second
)

// outages is L10: round trips while the store's process is stopped for a quarter of each minute.
func outages(ctx context.Context, g *env, r *Report) {
	if g.firestore == nil || g.firestore.PID() == 0 {
		proof.Must(errors.New("L10 stops the process of a Firestore emulator that it has started: it needs -store " +
			"firestore and no FIRESTORE_EMULATOR_HOST"))
	}
	g.begin(ctx)
	var whole, decided, recovery series
	var stopping sync.WaitGroup
	var broken error
	stop := g.watch(r)
	n := 0
	stopping.Go(func() { n, broken = g.interrupt(ctx, &recovery) })
	g.crowd(ctx, func(ctx context.Context, uid string) error { return g.roundTrip(ctx, uid, &whole, &decided) })
	stopping.Wait()
	proof.Must(broken)
	stop()
	r.Figures["outages"], r.Figures["refusedMs"], r.Figures["recoveryMs"] = n, g.refusals.summary(), recovery.summary()
	r.Figures["roundTripMs"], r.Figures["answerMs"] = whole.summary(), g.answers.summary()
	// A run that was stored before the store stopped advances and gets its answer once the store is back.
	r.Figures["answersAfterTenSeconds"] = g.slow.counts()
	r.atLeast("answers of 503", float64(g.refusals.count()), 1)
	r.atMost("slowest 503 s", g.refusals.ms(1)/1000, 10)
	r.atMost("slowest recovery s", recovery.ms(1)/1000, 30)
	r.atMost("errors that are not the store's", float64(g.errors.sum()-g.errors.counts()[storeDown]+g.failed.sum()), 0)
}

const storeDown = "503 ToolExecutionError store_unavailable"

// interrupt stops and continues the store, and measures the time until a run succeeds again.
func (g *env) interrupt(ctx context.Context, recovery *series) (n int, err error) {
	every, lasts := min(outageEvery, g.For), min(outageLasts, g.For/4)
	for end := time.Now().Add(g.For); time.Now().Add(every/2 + lasts).Before(end); n++ {
		if err := wait.For(ctx, every/2); err != nil {
			return n, err
		}
		if err := syscall.Kill(g.firestore.PID(), syscall.SIGSTOP); err != nil {
			return n, err
		}
		stopped := wait.For(ctx, lasts)
		if err := errors.Join(stopped, syscall.Kill(g.firestore.PID(), syscall.SIGCONT)); err != nil {
			return n, err
		}
		back := time.Now()
		a, err := g.ask(ctx, "probe", "say hello", fmt.Sprintf("after-%d", n))
		if err != nil {
			return n, err
		}
		g.ledger.asked(a.RunID, "")
		recovery.since(back)
		if err := wait.For(ctx, every/2-lasts); err != nil {
			return n, err
		}
	}
	return n, nil
}
