package main

import (
	"strings"
	"testing"
	"time"
)

// TestWaiting has a mail that waits and one that was sent: what waits is counted and named, without what it says.
func TestWaiting(t *testing.T) { onBothStores(t, whatWaits) }

func whatWaits(w *deployment) {
	w.prints([]string{"nothing waits"}, "waiting")
	sent, waits := w.mail(true), w.mail(false)
	want := []string{"under 1h", "under 7d", "awaiting_confirmation", "\n  " + waits + "  awaiting_"}
	out := w.prints(want, "waiting")
	if strings.Contains(out, sent) || strings.Contains(out, canary) || strings.Contains(out, "ana") {
		w.t.Errorf("more is said than what waits:\n%s", out)
	}
	if out := w.prints([]string{"awaiting_confirmation"}, "waiting", "-oldest", "0"); strings.Contains(out, waits) {
		w.t.Errorf("with -oldest 0 a run is named:\n%s", out)
	}
	if _, _, err := w.ops("waiting", "-oldest", "-1"); err == nil {
		w.t.Error("-1 runs can be named")
	}
}

// TestAges has each run counted in the column of its age, its limit still within it.
func TestAges(t *testing.T) {
	now := time.Date(2026, 1, 8, 0, 0, 0, 0, time.UTC)
	var runs []waitingRun
	for _, age := range []time.Duration{8 * 24 * time.Hour, 7 * 24 * time.Hour, 25 * time.Hour, 2 * time.Hour, 1} {
		runs = append(runs, waitingRun{"r-" + age.String(), "awaiting_confirmation", now.Add(-age)})
	}
	runs = append(runs, waitingRun{"r", "put aside", now})
	var out strings.Builder
	if err := (&operator{out: &out}).printWaiting(runs, 1, now); err != nil {
		t.Fatal(err)
	}
	const want = `runs by age               under 1h  under 1d  under 7d     older
awaiting_confirmation            1         1         2         1
put aside                        1         0         0         0

the oldest; story RUN tells what one waits for:
  r-192h0m0s  awaiting_confirmation    192h0m0s
`
	if out.String() != want {
		t.Errorf("it prints\n%s\nwant\n%s", out.String(), want)
	}
}
