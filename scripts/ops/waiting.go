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

// maxOldest bounds the runs that waiting names.
const maxOldest = 1000

// age is a column of waiting.
type age struct {
	name string
	most time.Duration
}

// ages are the columns of waiting: how long ago a run began, at most; the last has no end.
var ages = []age{{"under 1h", time.Hour}, {"under 1d", 24 * time.Hour}, {"under 7d", 7 * 24 * time.Hour},
	{"older", math.MaxInt64}}

// waitingRun is a run that has not ended.
type waitingRun struct {
	id, status string
	began      time.Time
}

// waiting prints how many runs wait for what, by their age, and names the oldest. It reads the fields of runs that have
// not ended, shard by shard, and none of their contents.
func waiting(flags *flag.FlagSet) runFunc {
	oldest := flags.Int("oldest", 10, "how many of the oldest are named")
	return func(ctx context.Context, o *operator, _ []string) error {
		if *oldest < 0 || *oldest > maxOldest {
			return fmt.Errorf("-oldest is %d, and must be 0 to %d", *oldest, maxOldest)
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
				if f.Aside {
					f.Status = "put aside"
				}
				runs = append(runs, waitingRun{document.ID(d), f.Status, f.CreatedAt})
			}
		}
		slices.SortFunc(runs, func(a, b waitingRun) int { return a.began.Compare(b.began) })
		return o.printWaiting(runs, *oldest, time.Now())
	}
}

// printWaiting prints runs, the oldest first.
func (o *operator) printWaiting(runs []waitingRun, oldest int, now time.Time) error {
	if len(runs) == 0 {
		return o.printf("nothing waits")
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
		lines = append(lines, o.printf("\nthe oldest; story RUN tells what one waits for:"))
	}
	for _, r := range runs[:min(oldest, len(runs))] {
		lines = append(lines, o.printf("  %s  %-24s %s", r.id, r.status, now.Sub(r.began).Round(time.Second)))
	}
	return errors.Join(lines...)
}
