package load

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
)

// crowd makes each client call do repeatedly until the time is over. It then waits for the calls in progress.
func (g *env) crowd(ctx context.Context, do func(ctx context.Context, uid string) error) {
	end := time.Now().Add(g.For)
	var clients sync.WaitGroup
	for i := range g.Clients {
		uid := fmt.Sprintf("user-%d", i)
		clients.Go(func() {
			for time.Now().Before(end) && ctx.Err() == nil {
				if err := do(ctx, uid); err != nil && ctx.Err() == nil {
					g.failed.add(err.Error())
				}
			}
		})
	}
	clients.Wait()
}

// plain is L1 and L2: each client starts runs without a tool, one after the other.
func plain(ctx context.Context, g *env, r *Report) {
	g.begin(ctx)
	var runs series
	stop := g.watch(r)
	g.crowd(ctx, func(ctx context.Context, uid string) error {
		took, err := g.plain(ctx, uid)
		if err == nil {
			runs.add(took)
		}
		return err
	})
	took := stop()
	perSecond := float64(runs.count()) / took.Seconds()
	r.Figures["runsPerSecond"], r.Figures["runMs"] = round(perSecond), runs.summary()
	if r.Name == "L1" {
		r.atLeast("runs/s", perSecond, 60)
		r.atMost("p50 ms", runs.ms(0.5), 80)
		r.atMost("p99 ms", runs.ms(0.99), 250)
	} else {
		r.atLeast("runs/s", perSecond, 1500)
		r.atMost("p99 ms", runs.ms(0.99), 15)
	}
	r.atMost("errors", float64(g.errors.sum()+g.failed.sum()), 0)
}

// inOneProcess lets the workers advance runs as the local server does; on the emulators Pub/Sub delivers.
func inOneProcess(g *env) { g.working = g.options.Store == "embedded" }

// roundTrips is L3: an e-mail from the prompt through the approval to the end of its run.
func roundTrips(ctx context.Context, g *env, r *Report) {
	g.begin(ctx)
	r.atLeast("round trips/s", g.trips(ctx, r), 25)
	r.atMost("errors", float64(g.errors.sum()+g.failed.sum()), 0)
}

// trips measures round trips with a Gmail that takes 5 ms for each call.
func (g *env) trips(ctx context.Context, r *Report) (perSecond float64) {
	g.SetFault(func(string) fakegoogle.Fault { return fakegoogle.Fault{Delay: 5 * time.Millisecond} })
	var whole, decided series
	stop := g.watch(r)
	g.crowd(ctx, func(ctx context.Context, uid string) error { return g.roundTrip(ctx, uid, &whole, &decided) })
	took := stop()
	perSecond = float64(whole.count()) / took.Seconds()
	r.Figures["roundTripsPerSecond"], r.Figures["roundTripMs"], r.Figures["approveToFinalMs"] = round(perSecond),
		whole.summary(), decided.summary()
	r.atMost("approve to final p95 ms", decided.ms(0.95), 500)
	r.atMost("approve to final p99 ms", decided.ms(0.99), 1500)
	return perSecond
}

// storm is L5: first plain round trips, then the same with each message delivered five times.
func storm(ctx context.Context, g *env, r *Report) {
	g.begin(ctx)
	calm := newReport(measurement{name: r.Name, options: g.options})
	before := g.trips(ctx, calm)
	g.relay.copies = 5
	during := g.trips(ctx, r)
	r.Targets = nil // L3's targets do not apply
	r.Figures["calm"] = calm.Figures
	r.atLeast("throughput of the storm to the calm, %", 100*during/max(before, 0.01), 60)
	r.atMost("errors", float64(g.errors.sum()+g.failed.sum()), 0)
}
