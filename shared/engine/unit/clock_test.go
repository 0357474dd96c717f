package unit

import (
	"testing"
	"time"
)

// TestClock checks both readings of a clock after an answer that took three seconds: the store wrote its time at any
// moment between the request and the answer.
func TestClock(t *testing.T) {
	local := time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	stored := local.Add(-time.Hour) // the clocks differ by an hour
	c := clock{local: func() time.Time { return local }}
	sent := local
	local = local.Add(3 * time.Second)
	c.observe(stored, sent)
	local = local.Add(10 * time.Second)
	if got, want := c.earliest(), stored.Add(10*time.Second); !got.Equal(want) {
		t.Errorf("earliest is %s, want %s", got, want)
	}
	if got, want := c.latest(), stored.Add(13*time.Second); !got.Equal(want) {
		t.Errorf("latest is %s, want %s", got, want)
	}
	c.observe(stored.Add(-time.Minute), local) // an older answer changes nothing
	if got, want := c.earliest(), stored.Add(10*time.Second); !got.Equal(want) {
		t.Errorf("after an older answer, earliest is %s, want %s", got, want)
	}
	local = local.Add(-time.Hour) // the local clock is set back
	if got := c.earliest(); got.Before(stored) {
		t.Errorf("earliest is %s, before the store's own time %s", got, stored)
	}
}
