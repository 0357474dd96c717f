package main

import (
	"regexp"
	"strings"
	"testing"
	"time"
)

// anasName matches the user ana's name as a word of its own, because an ID can hold these letters.
var anasName = regexp.MustCompile(`\bana\b`)

// TestWaiting creates an e-mail that waits and one that was sent. The waiting run is counted and listed without
// contents.
func TestWaiting(t *testing.T) { onBothStores(t, whatWaits) }

func whatWaits(w *deployment) {
	w.prints([]string{"no open runs"}, "waiting")
	sent, waits := w.mail(true), w.mail(false)
	want := []string{"under 1h", "under 7d", "awaiting_confirmation", "\n  " + waits + "  awaiting_"}
	out := w.prints(want, "waiting")
	if strings.Contains(out, sent) || strings.Contains(out, canary) || anasName.MatchString(out) {
		w.t.Errorf("the output has contents or an ended run:\n%s", out)
	}
	if out := w.prints([]string{"awaiting_confirmation"}, "waiting", "-oldest", "0"); strings.Contains(out, waits) {
		w.t.Errorf("-oldest 0 lists a run:\n%s", out)
	}
	if _, _, err := w.ops("waiting", "-oldest", "-1"); err == nil {
		w.t.Error("-oldest -1 is accepted")
	}
}

// TestAges creates one run in each column, including one exactly at a column's limit.
func TestAges(t *testing.T) {
	now := time.Date(2026, 1, 8, 0, 0, 0, 0, time.UTC)
	var runs []waitingRun
	for _, age := range []time.Duration{8 * 24 * time.Hour, 7 * 24 * time.Hour, 25 * time.Hour, 2 * time.Hour, 1} {
		runs = append(runs, waitingRun{"r-" + age.String(), "awaiting_confirmation", now.Add(-age)})
	}
	runs = append(runs, waitingRun{"r", "quarantined", now})
	var out strings.Builder
	if err := (&operator{out: &out}).printWaiting(runs, 1, now); err != nil {
		t.Fatal(err)
	}
	const want = `runs by age               under 1h  under 1d  under 7d     older
awaiting_confirmation            1         1         2         1
quarantined                      1         0         0         0

the oldest (story RUN shows what a run waits for):
  r-192h0m0s  awaiting_confirmation    192h0m0s
`
	if out.String() != want {
		t.Errorf("it prints\n%s\nwant\n%s", out.String(), want)
	}
}
