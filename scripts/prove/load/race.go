package load

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/testkit"
)

// race is L4: many clients decide about one approval at the same moment, and this repeats with further approvals. Half
// of the decisions approve, and half reject. One decision wins. Equal decisions get the same answer, and the others get
// a conflict.
func race(ctx context.Context, g *env, r *Report) {
	g.begin(ctx)
	var answers series
	oneWinner, yes := 0, 0
	stop := g.watch(r)
	for i := range g.Count {
		uid := fmt.Sprintf("user-%d", i%20)
		subject, a, err := g.mail(ctx, uid)
		proof.Must(err)
		g.ledger.approved(subject)
		won := g.decideAtOnce(ctx, uid, a.Approvals[0], &answers)
		a, err = g.finish(ctx, uid, a.RunID, subject)
		proof.Must(err)
		status := a.Actions[0].Status
		if status == "completed" {
			yes++
		}
		if len(won) == 1 && (won["approve_once"] && status == "completed" || won["reject"] && status == "rejected") {
			oneWinner++
		}
	}
	stop()
	r.Figures["answerMs"], r.Figures["approved"], r.Figures["rejected"] = answers.summary(), yes, g.Count-yes
	r.atLeast("approvals with one winner", float64(oneWinner), float64(g.Count))
	r.atMost("slowest answer ms", answers.ms(1), 2000)
	r.atMost("answers that are neither 200 nor 409", float64(g.otherThan("409 PolicyError already_resolved")), 0)
}

// decideAtOnce returns the decisions that were answered with 200.
func (g *env) decideAtOnce(ctx context.Context, uid string, p testkit.Approval, answers *series) map[string]bool {
	var mu sync.Mutex
	won := map[string]bool{}
	proof.AtOnce(g.Clients, func(i int) {
		decision, start := []string{"approve_once", "reject"}[i%2], time.Now()
		// once counts the errors. The losers' errors are expected.
		a, _ := g.once(uid).Resolve(ctx, p, decision)
		answers.since(start)
		if a.HTTP == http.StatusOK {
			mu.Lock()
			defer mu.Unlock()
			won[decision] = true
		}
	})
	return won
}

// otherThan counts the errors of all classes except one.
func (g *env) otherThan(class string) int { return g.errors.sum() - g.errors.counts()[class] }
