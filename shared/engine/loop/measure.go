package loop

import (
	"context"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/telemetry/metrics"
)

// The instruments of the sweep (Env.Metrics).
var (
	sweepFound = &metrics.Instrument{Name: "countersign.sweep.found", Unit: "{run}",
		Description: "Runs that a sweep found overdue: their worker died, a resume was lost, an approval expired."}
	approvalsWaiting = &metrics.Instrument{Kind: metrics.Gauge, Name: "countersign.approval.waiting",
		Unit: "{approval}", Description: "Approvals and reviews that wait for their users."}
	oldestApproval = &metrics.Instrument{Kind: metrics.Gauge, Name: "countersign.approval.oldest", Unit: "s",
		Description: "Waiting time of the oldest waiting approval or review; 0 if none waits."}
)

// measureEvery is the time between two measurements of waiting approvals, which must be read for that.
const measureEvery = 5 * time.Minute

// measureWaiting measures the waiting approvals of at most one page of runs in each shard: those that expire first.
// Unreadable runs are left out. If the store fails, the next sweep measures again.
func measureWaiting(ctx context.Context, l *Loop) {
	if l.Metrics == nil || l.Now().Unix()-l.measured.Load() < int64(measureEvery/time.Second) {
		return
	}
	count, oldest := map[run.Kind]int{}, map[run.Kind]time.Duration{}
	for docs, err := range document.FirstPages(ctx, l.Store, func(shard int64) store.Query {
		return document.WaitingRuns(shard, sweepPage)
	}) {
		if err != nil {
			l.Log.WarnContext(ctx, "the waiting approvals could not be measured", "error", err)
			return
		}
		for _, d := range docs {
			ex := l.NewExecution(document.ID(d), nil)
			if ex.LoadRead(ctx, d) != nil {
				continue
			}
			for _, a := range ex.State.Open() {
				count[a.Kind]++
				oldest[a.Kind] = max(oldest[a.Kind], d.ReadTime.Sub(a.UpdatedAt))
			}
		}
	}
	for _, kind := range []run.Kind{run.KindApproval, run.KindPlan, run.KindReview} {
		attr := metrics.Attr{Key: "countersign.approval.kind", Value: string(kind)}
		l.Metrics.Measure(approvalsWaiting, float64(count[kind]), attr)
		l.Metrics.Measure(oldestApproval, oldest[kind].Seconds(), attr)
	}
	l.measured.Store(l.Now().Unix())
}
