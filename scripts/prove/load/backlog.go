package load

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/base/wait"
)

// sweepAsInTheCloud sets the sweeps to once a minute: each sweep publishes the due runs that were not delivered.
func sweepAsInTheCloud(g *env) { g.sweeps = time.Minute }

// backlog is L9. For a while no messages are delivered, and approved runs pile up. Then delivery starts again.
func backlog(ctx context.Context, g *env, r *Report) {
	began := time.Now()
	proof.Must(g.deliver(ctx, false))
	p, err := g.start()
	proof.Must(err)
	piled, err := g.pile(ctx)
	proof.Must(err)
	r.Figures["piledUpIn"] = time.Since(began).Round(time.Second).String()
	proof.Must(wait.For(ctx, g.For-time.Since(began)))
	proof.Must(g.kill(p))
	proof.Must(g.deliver(ctx, true))
	_, err = g.start()
	proof.Must(err)
	stop := g.watch(r)
	proof.Must(g.drained(ctx, piled))
	took := stop()
	g.completed(ctx, piled)
	r.Figures["drainedPerSecond"] = round(float64(len(piled)) / took.Seconds())
	r.atMost("drained in s", took.Seconds(), 300)
	r.atMost("out of order by more than 10 % of the backlog, %", 100*g.relay.displaced(piled), 10)
	r.atMost("dead letters", float64(g.relay.deadLetters()), 0)
	r.atMost("errors", float64(g.errors.sum()+g.failed.sum()), 0)
}

// pile makes the clients request and approve e-mails, and returns the runs in the order of their approvals.
func (g *env) pile(ctx context.Context) (runs []piled, err error) {
	var mu sync.Mutex
	var next atomic.Int64
	var clients sync.WaitGroup
	for i := range g.Clients {
		uid := fmt.Sprintf("user-%d", i)
		clients.Go(func() {
			for next.Add(1) <= int64(g.Count) && ctx.Err() == nil {
				subject, a, err := g.mail(ctx, uid)
				if err == nil {
					g.ledger.approved(subject)
					_, err = g.decide(ctx, uid, a.Approvals[0], "approve_once")
				}
				if err != nil {
					g.failed.add(err.Error())
					continue
				}
				mu.Lock()
				runs = append(runs, piled{uid, a.RunID})
				mu.Unlock()
			}
		})
	}
	clients.Wait()
	return runs, ctx.Err()
}

// piled is a run that was approved and waits for its resume.
type piled struct{ uid, runID string }

// drained waits until a message of every run was acknowledged. The resume function acknowledges a message when it has
// advanced the run.
func (g *env) drained(ctx context.Context, runs []piled) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	for len(g.relay.taken(runs)) < len(runs) {
		if err := wait.For(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// completed checks every run of the backlog.
func (g *env) completed(ctx context.Context, runs []piled) {
	for _, p := range runs {
		a, err := g.until(ctx, p.uid, p.runID, ended)
		if err == nil && a.Status != "completed" {
			err = fmt.Errorf("a run of the backlog is %s: %s", a.Status, a.Message)
		}
		if err != nil {
			g.failed.add(err.Error())
		}
	}
}

// taken returns the runs with an acknowledged message, in the order of the acknowledgments.
func (r *relay) taken(runs []piled) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	wanted := map[string]bool{}
	for _, p := range runs {
		wanted[p.runID] = true
	}
	var out []string
	for _, id := range r.order {
		if wanted[id] {
			out = append(out, id)
		}
	}
	return out
}

// displaced returns the share of the runs that were resumed more than a tenth of the backlog before or after their
// turn.
func (r *relay) displaced(runs []piled) float64 {
	place := map[string]int{}
	for i, p := range runs {
		place[p.runID] = i
	}
	far := 0
	for i, id := range r.taken(runs) {
		if 10*max(i-place[id], place[id]-i) > len(runs) {
			far++
		}
	}
	return float64(far) / float64(max(len(runs), 1))
}
