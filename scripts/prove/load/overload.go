package load

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/base/wait"
	"github.com/countersign-run/countersign/shared/testkit"
)

const calmClients = 16 // concurrent clients before the burst

// burst is L12. First, a few clients approve waiting calls, one after the other. Then each of the remaining calls is
// approved by its own client, all within one second. A client that gets a 429 or 503 retries at the time in the answer.
func burst(ctx context.Context, g *env, r *Report) {
	g.begin(ctx)
	calmly, err := g.asked(ctx)
	proof.Must(err)
	atOnce, err := g.asked(ctx)
	proof.Must(err)
	var before, whole series
	began, spent := time.Now(), g.usage()[partWorker]
	g.each(ctx, calmly, calmClients, func(w asking) error { return g.sayYes(ctx, w, &before) })
	calm := float64(len(calmly)) / time.Since(began).Seconds()
	between := g.usage()[partWorker]

	stop := g.watch(r)
	var due atomic.Int64
	pace := time.Second / time.Duration(max(len(atOnce), 1))
	g.each(ctx, atOnce, len(atOnce), func(w asking) error {
		if err := wait.For(ctx, pace*time.Duration(due.Add(1))); err != nil {
			return err
		}
		return g.sayYes(ctx, w, &whole)
	})
	perSecond := float64(whole.count()) / stop().Seconds()
	// Other processes of the machine reduce the throughput of both phases, but do not change these times.
	r.Figures["calmCPUMsPerRun"] = round(1000 * (between - spent) / float64(len(calmly)))
	r.Figures["cpuMsPerRun"] = round(1000 * (g.usage()[partWorker] - between) / float64(len(atOnce)))
	r.Figures["calmPerSecond"], r.Figures["perSecond"] = round(calm), round(perSecond)
	r.Figures["calmYesToFinalMs"], r.Figures["yesToFinalMs"] = before.summary(), whole.summary()
	r.atLeast("throughput of the burst to the calm, %", 100*perSecond/max(calm, 0.01), 95)
	r.atMost("yes to final p99 to p50", whole.ms(0.99)/max(whole.ms(0.5), 1), 20)
	r.atLeast("runs that ended", float64(whole.count()), float64(g.Count))
	r.atMost("errors other than a refusal that says when to ask again", float64(g.unkind()), 0)
	r.atMost("failures", float64(g.failed.sum()), 0)
}

// asking is a run that waits for its user.
type asking struct {
	uid, subject, runID string
	approval            testkit.Approval
}

// asked makes Count runs wait, for fifty users.
func (g *env) asked(ctx context.Context) (all []asking, err error) {
	var mu sync.Mutex
	g.each(ctx, make([]asking, g.Count), calmClients, func(asking) error {
		mu.Lock()
		uid := fmt.Sprintf("user-%d", len(all)%50)
		mu.Unlock()
		subject, a, err := g.mail(ctx, uid)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		all = append(all, asking{uid, subject, a.RunID, a.Approvals[0]})
		return nil
	})
	if len(all) < g.Count {
		err = fmt.Errorf("%d of %d runs wait: %v", len(all), g.Count, g.failed.counts())
	}
	return all, err
}

// each calls do for each run, in parallel by the given number of clients, and counts the failures.
func (g *env) each(ctx context.Context, all []asking, clients int, do func(asking) error) {
	var next atomic.Int64
	var group sync.WaitGroup
	for range clients {
		group.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(all)) && ctx.Err() == nil; i = next.Add(1) - 1 {
				if err := do(all[i]); err != nil && ctx.Err() == nil {
					g.failed.add(err.Error())
				}
			}
		})
	}
	group.Wait()
}

// sayYes approves the call of a run, and waits for the run's end. It polls if the answer comes before that.
func (g *env) sayYes(ctx context.Context, w asking, whole *series) error {
	began := time.Now()
	g.ledger.approved(w.subject)
	a, err := g.patient(w.uid)(ctx, http.MethodPost, "/api/agent/approvals/resolve", map[string]string{
		"approvalId": w.approval.ApprovalID, "argsHash": w.approval.ArgsHash, "decision": "approve_once"},
		testkit.Wait...)
	if err != nil {
		return err
	}
	if !ended(a) {
		if a, err = g.finish(ctx, w.uid, w.runID, w.subject); err != nil {
			return err
		}
	}
	if a.Status != "completed" {
		return fmt.Errorf("a run is %s after its approval: %s", a.Status, a.Message)
	}
	whole.since(began)
	return nil
}

// unkind counts the errors other than temporary refusals.
func (g *env) unkind() (n int) {
	for class, count := range g.errors.counts() {
		if !refusalForNow(class) {
			n += count
		}
	}
	return n
}
