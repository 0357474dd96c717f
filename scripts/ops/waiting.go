package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/store/document"
)

// maxOldest limits the number of listed runs.
const maxOldest = 1000

// age is a column of the output.
type age struct {
	name string
	most time.Duration
}

// ages are the columns of the output. Each gives the maximum time since the run began; the last has no limit.
var ages = []age{{"under 1h", time.Hour}, {"under 1d", 24 * time.Hour}, {"under 7d", 7 * 24 * time.Hour},
	{"older", math.MaxInt64}}

// waitingRun is a run that has not ended.
type waitingRun struct {
	id, status string
	began      time.Time
}

// waiting counts open runs by state and age, and lists the oldest. It reads the index fields of open runs, shard by
// shard, and no contents.
func waiting(flags *flag.FlagSet) runFunc {
	oldest := flags.Int("oldest", 10, "how many of the oldest runs to list")
	return func(ctx context.Context, o *operator, _ []string) error {
		if *oldest < 0 || *oldest > maxOldest {
			return fmt.Errorf("-oldest is %d; it must be 0 to %d", *oldest, maxOldest)
		}
		a, err := o.app(ctx)
		if err != nil {
			return err
		}
		var runs []waitingRun
		for shard := range int64(document.Shards) {
			q := document.DueRuns(shard, document.Never, pageSize) // quarantined runs are due at Never
			for d, err := range document.All(ctx, a.Store, q) {
				if err != nil {
					return err
				}
				f := document.RunFieldsOf(d)
				if f.Quarantined {
					f.Status = "quarantined"
				}
				runs = append(runs, waitingRun{document.ID(d), f.Status, f.CreatedAt})
			}
		}
		slices.SortFunc(runs, func(a, b waitingRun) int { return a.began.Compare(b.began) })
		return o.printWaiting(runs, *oldest, time.Now())
	}
}

// printWaiting prints the counts, and then the oldest runs.
func (o *operator) printWaiting(runs []waitingRun, oldest int, now time.Time) error {
	if len(runs) == 0 {
		return o.printf("no open runs")
	}
	counts := map[string][]int{}
	for _, r := range runs {
		if counts[r.status] == nil {
			counts[r.status] = make([]int, len(ages))
		}
		column := slices.IndexFunc(ages, func(a age) bool { return now.Sub(r.began) <= a.most })
		counts[r.status][column]++
	}
	head := fmt.Sprintf("%-24s", "runs by age")
	for _, a := range ages {
		head += fmt.Sprintf(" %9s", a.name)
	}
	lines := []error{o.printf("%s", head)}
	for _, status := range slices.Sorted(maps.Keys(counts)) {
		line := fmt.Sprintf("%-24s", status)
		for _, n := range counts[status] {
			line += fmt.Sprintf(" %9d", n)
		}
		lines = append(lines, o.printf("%s", line))
	}
	if oldest > 0 {
		lines = append(lines, o.printf("\nthe oldest (story RUN shows what a run waits for):"))
	}
	for _, r := range runs[:min(oldest, len(runs))] {
		lines = append(lines, o.printf("  %s  %-24s %s", r.id, r.status, now.Sub(r.began).Round(time.Second)))
	}
	return errors.Join(lines...)
}
