package policy_test

import (
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/policy"
)

// TestDailyUses checks that each effect counts once, and that the count restarts each day (UTC).
func TestDailyUses(t *testing.T) {
	day := time.Date(2026, 11, 28, 23, 59, 0, 0, time.UTC)
	var e policy.Entry
	for n := range policy.UsedPerDay {
		if used := e.UsedOn(day); used != n {
			t.Fatalf("after %d effects, UsedOn = %d", n, used)
		}
		e.Use(day)
	}
	if next := day.Add(time.Minute).In(time.FixedZone("west", -8*3600)); e.UsedOn(next) != 0 {
		t.Errorf("on the next day, UsedOn = %d", e.UsedOn(next))
	}
}
