package load

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/countersign-run/countersign/scripts/prove/proof"
)

// hotThread is L6: one user starts many runs at once on one thread. Each round has a new thread.
func hotThread(ctx context.Context, g *env, r *Report) {
	g.begin(ctx)
	var runs series
	rounds, inOrder := 0, 0
	stop := g.watch(r)
	for end := time.Now().Add(g.For); rounds == 0 || time.Now().Before(end); rounds++ {
		first, err := g.ask(ctx, "hot", "say hello", fmt.Sprintf("thread-%d", rounds))
		proof.Must(err)
		g.ledger.asked(first.RunID, "")
		g.askAtOnce(ctx, "hot", first.ThreadID, &runs)
		why, err := g.threadOrder(ctx, "hot", first.ThreadID)
		proof.Must(err)
		if why != "" {
			g.failed.add(why)
			continue
		}
		inOrder++
	}
	took := stop()
	r.Figures["rounds"], r.Figures["runMs"], r.Figures["runsPerSecond"] = rounds, runs.summary(),
		round(float64(runs.count())/took.Seconds())
	r.atLeast("runs that ended", float64(runs.count()), float64(rounds*g.Clients))
	r.atLeast("threads in order", float64(inOrder), float64(rounds))
	r.atMost("p99 ms", runs.ms(0.99), 5000)
	r.atMost("errors", float64(g.errors.sum()), 0)
}

func (g *env) askAtOnce(ctx context.Context, uid, threadID string, runs *series) {
	proof.AtOnce(g.Clients, func(int) {
		start := time.Now()
		a, err := g.send(ctx, uid, "POST", "/api/agent/run",
			map[string]string{"prompt": "say hello", "threadId": threadID})
		if err == nil {
			g.ledger.asked(a.RunID, "")
		}
		if err == nil && a.Status == "completed" {
			runs.since(start)
		}
	})
}

// threadOrder returns a description of the faults in a thread's order, or "". The messages must be numbered without a
// gap. Each run must have one question and, later, one answer.
func (g *env) threadOrder(ctx context.Context, uid, threadID string) (string, error) {
	type message struct {
		Seq         int64
		Role, RunID string
	}
	var all []message
	for before := int64(0); ; {
		path := "/api/agent/threads/" + threadID + "/messages?limit=100"
		if before > 0 {
			path += fmt.Sprintf("&before=%d", before)
		}
		a, err := g.send(ctx, uid, "GET", path, nil)
		if err != nil {
			return "", err
		}
		var page struct {
			Messages []message
			Before   int64
		}
		if err := json.Unmarshal(a.Body, &page); err != nil {
			return "", err
		}
		all = append(page.Messages, all...)
		if before = page.Before; before == 0 {
			break
		}
	}
	asked, answered := map[string]int{}, map[string]int{}
	for i, m := range all {
		switch {
		case m.Seq != int64(i+1):
			return fmt.Sprintf("message %d of the thread has the number %d", i+1, m.Seq), nil
		case m.Role == "user":
			asked[m.RunID]++
		case asked[m.RunID] != 1:
			return "an answer comes before its question", nil
		default:
			answered[m.RunID]++
		}
	}
	for id, n := range asked {
		if n != 1 || answered[id] != 1 {
			return fmt.Sprintf("a run has %d questions and %d answers", n, answered[id]), nil
		}
	}
	if len(asked) != g.Clients+1 {
		return fmt.Sprintf("%d runs are in the thread", len(asked)), nil
	}
	return "", nil
}
