package policy_test

import (
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/policy"
)

// TestUseCountsOneADay counts each effect once, and begins anew with each day in UTC.
func TestUseCountsOneADay(t *testing.T) {
	day := time.Date(2026, 11, 28, 23, 59, 0, 0, time.UTC)
	var e policy.Entry
	for n := range policy.UsedPerDay {
		if used := e.UsedOn(day); used != n {
			t.Fatalf("after %d effects it has allowed %d", n, used)
		}
		e.Use(day)
	}
	if next := day.Add(time.Minute).In(time.FixedZone("west", -8*3600)); e.UsedOn(next) != 0 {
		t.Errorf("on the next day it has allowed %d", e.UsedOn(next))
	}
}
