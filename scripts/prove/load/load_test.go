package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/testkit/emulators"
	"github.com/countersign-run/countersign/shared/testkit/leaktest"
)

// TestMain runs the worker if a measurement has started this test binary again.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == workerCommand {
		os.Exit(worker(os.Stderr))
	}
	leaktest.Main(m)
}

// TestEachMeasurement runs each measurement for a second. Its speed does not matter here; the invariants must hold.
func TestEachMeasurement(t *testing.T) {
	tests := map[string][]string{
		"L1":  {"-store", "embedded", "-for", "1s", "-clients", "2"},
		"L2":  {"-for", "1s", "-clients", "2"},
		"L3":  {"-for", "1s", "-clients", "2"},
		"L4":  {"-clients", "10", "-n", "2"},
		"L5":  {"-for", "1s", "-clients", "2"},
		"L6":  {"-for", "1s", "-clients", "5"},
		"L7":  {"-for", "1s", "-clients", "5"},
		"L8":  {"-for", "1s", "-clients", "3"},
		"L9":  {"-for", "1s", "-clients", "2", "-n", "5"},
		"L11": {"-for", "1s"},
	}
	for _, m := range slices.Backward(measurements) { // the soak waits most, so it begins first
		args, ok := tests[m.name]
		if !ok {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			holds(t, report(t, append([]string{m.name}, args...)))
		})
	}
}

// TestAnOutage: L10 stops a store, and so needs its own.
func TestAnOutage(t *testing.T) {
	if os.Getenv("FIRESTORE_EMULATOR_HOST") != "" {
		t.Skip("FIRESTORE_EMULATOR_HOST names a store that is not this test's to stop")
	}
	t.Parallel()
	m, _, err := parse([]string{"L10", "-for", "4s", "-clients", "2"}, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	r, err := m.measure(t.Context())
	if errors.Is(err, emulators.ErrAbsent) && os.Getenv("REQUIRE_ALL") != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	holds(t, r)
}

// speed lists the targets that a machine that runs other tests may miss.
var speed = []string{"runs/s", "p50 ms", "p99 ms", "approve to final p95 ms", "approve to final p99 ms",
	"round trips/s", "slowest answer ms",
	"throughput of the storm to the calm, %", "first byte p95 ms", "health p99 ms", "pending p99 ms", "drained in s",
	"RSS slope MiB/min",
	"out of order by more than 10 % of the backlog, %", "slowest 503 s", "slowest recovery s", "answers of 503"}

// report is what the program prints.
func report(t *testing.T, args []string) *Report {
	var out, errs bytes.Buffer
	if code := run(t.Context(), args, &out, &errs); code == unable {
		t.Fatal(errs.String())
	}
	r := new(Report)
	if err := json.Unmarshal(out.Bytes(), r); err != nil {
		t.Fatal(err)
	}
	return r
}

func holds(t *testing.T, r *Report) {
	for _, p := range r.Problems {
		t.Error(p)
	}
	for _, target := range r.Targets {
		if !target.Met && !slices.Contains(speed, target.What) {
			t.Errorf("%s: %v, want %s (%v)", target.What, target.Got, target.Want, r.Figures)
		}
	}
	if len(r.Targets) == 0 || r.Limited == "" {
		t.Errorf("the report says nothing: %+v", r)
	}
}

func TestWrongArguments(t *testing.T) {
	for _, args := range [][]string{nil, {"L99"}, {"L1", "-store", "paper"}, {"L1", "more"}, {"L1", "-for", "long"}} {
		var out, errs bytes.Buffer
		if code := run(t.Context(), args, &out, &errs); code != unable || errs.Len() == 0 || out.Len() > 0 {
			t.Errorf("%q: status %d, %q, %q", args, code, out.String(), errs.String())
		}
	}
}

func TestQuantiles(t *testing.T) {
	var s series
	for i := 100; i > 0; i-- {
		s.add(time.Duration(i) * time.Millisecond)
	}
	for q, want := range map[float64]float64{0.5: 50, 0.95: 95, 0.99: 99, 1: 100} {
		if got := s.ms(q); got != want {
			t.Errorf("the quantile %v is %v, want %v", q, got, want)
		}
	}
	if got := new(series).ms(0.5); got != 0 {
		t.Errorf("the median of nothing is %v", got)
	}
}

func TestSlope(t *testing.T) {
	s := sampler{at: []float64{0, 1, 2, 3, 4, 5}, mib: []float64{90, 10, 12, 14, 16, 18}}
	if got := s.slope(); got != 2 {
		t.Errorf("the slope after the warm-up is %v, want 2", got)
	}
	if got := new(sampler).slope(); got != 0 {
		t.Errorf("the slope of nothing is %v", got)
	}
}
