package run_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/fields"
)

// TestRunsPerMinute begins runs at random moments. No 60 seconds contain more runs than the limit; with a limit above
// 60, no 59 seconds do. A user who comes back after the stated time is admitted.
func TestRunsPerMinute(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l := run.Limits{RunsPerMinute: rapid.SampledFrom([]int{1, 2, 5, 30, 60, 61, 100}).Draw(t, "limit")}
		window := time.Minute
		if l.RunsPerMinute > 60 {
			window -= time.Second
		}
		var s run.UserUsage
		now := time.Date(2027, 3, 1, 23, 59, 0, 0, time.UTC)
		var begun []time.Time
		for range rapid.IntRange(1, 300).Draw(t, "requests") {
			now = now.Add(time.Duration(rapid.SampledFrom([]int{0, 1, 3, 100, 900, 2_000, 20_000}).Draw(t,
				"ms")) * time.Millisecond)
			if err := s.CheckStart(l, now); err != nil {
				f := fault.As(err)
				if f.Status() != 429 || f.RetryAfter <= 0 || f.RetryAfter > time.Minute {
					t.Fatalf("refused with %v; retry after %s", err, f.RetryAfter)
				}
				if err := s.CheckStart(l, now.Add(f.RetryAfter)); err != nil {
					t.Fatalf("refused again after the stated %s: %v", f.RetryAfter, err)
				}
				continue
			}
			s.CountStart(l, now)
			begun = append(begun, now)
			n := 0
			for _, at := range begun {
				if now.Sub(at) < window {
					n++
				}
			}
			if n > l.RunsPerMinute {
				t.Fatalf("%d runs within %s", n, window)
			}
			if len(s.Starts) > 62 {
				t.Fatalf("%d entries in Starts; the limit is 62", len(s.Starts))
			}
		}
	})
}

func TestUsageDay(t *testing.T) {
	l := run.Limits{CallsPerDay: 3, TokensPerDay: 100}
	night := time.Date(2027, 3, 1, 23, 59, 50, 0, time.UTC)
	var s run.UserUsage
	s.CountUse(night, 2, 99)
	if err := s.CheckModelBudget(l, night, 0, 0); err != nil {
		t.Error(err)
	}
	for _, more := range [][2]int{{1, 0}, {0, 1}} {
		err := s.CheckModelBudget(l, night, more[0], more[1])
		fields.Check(t, *fault.As(err), fault.Error{Code: fault.CodeBudget, RetryAfter: 10 * time.Second}, more)
	}
	if err := s.CheckModelBudget(l, night.Add(10*time.Second), 2, 99); err != nil {
		t.Errorf("tomorrow: %v", err)
	}
	if err := s.CheckModelBudget(run.Limits{}, night, 1000, 1_000_000); err != nil {
		t.Errorf("without limits: %v", err)
	}
}
