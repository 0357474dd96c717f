package metrics_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/countersign-run/countersign/shared/telemetry/metrics"
)

var (
	asked = &metrics.Instrument{Name: "asked"}
	took  = &metrics.Instrument{Kind: metrics.Histogram, Name: "took", Bounds: []float64{1, 2}}
	open  = &metrics.Instrument{Kind: metrics.Gauge, Name: "open"}
)

// shown returns the points of a batch, one on each line.
func shown(b metrics.Batch) (lines []string) {
	for _, p := range b.Points {
		lines = append(lines, fmt.Sprint(p.Of.Name, " ", p.Attrs[0].Value, " ", p.Value, " ", p.Count, " ", p.Buckets))
	}
	return lines
}

// TestMeasure checks that values are summed by their attributes, and that a batch that is taken removes its values.
func TestMeasure(t *testing.T) {
	now := time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC)
	m := metrics.New(func() time.Time { return now })
	red, blue := metrics.Attr{Key: "colour", Value: "red"}, metrics.Attr{Key: "colour", Value: "blue"}
	m.Measure(took, 0.5)
	m.Measure(took, 2) // a bucket includes its upper bound
	m.Measure(took, 3)
	m.Measure(asked, 1, red)
	m.Measure(asked, 4, blue)
	m.Measure(asked, 2, red)
	m.Measure(open, 7)
	m.Measure(open, 3)
	want := []string{"asked blue 4 1 []", "asked red 3 2 []", "open  3 2 []", "took  5.5 3 [1 1 1]"}
	now = now.Add(time.Minute)
	is := func(got metrics.Batch, isNew bool, points ...string) {
		t.Helper()
		if diff := cmp.Diff(points, shown(got)); diff != "" {
			t.Errorf("the points differ (-want +got):\n%s", diff)
		}
		if d := got.To.Sub(got.From); got.New != isNew || d != time.Minute {
			t.Errorf("new: %t, after %s; want %t and a minute", got.New, d, isNew)
		}
	}
	is(m.Batch(false), true, want...)
	is(m.Batch(true), false, want...)
	now = now.Add(time.Minute)
	m.Measure(took, 1)
	is(m.Batch(true), true, "took  1 1 [1 0 0]")
}

// TestTooManySeries checks that values beyond the limit are summed in one series.
func TestTooManySeries(t *testing.T) {
	m := metrics.New(time.Now)
	for i := range 3000 {
		m.Measure(asked, 1, metrics.Attr{Key: "user", Value: fmt.Sprint(i)})
	}
	all, sum := m.Batch(true).Points, 0.0
	for _, p := range all {
		sum += p.Value
	}
	if len(all) != 2001 || sum != 3000 {
		t.Errorf("%d series of %v", len(all), sum)
	}
}

// TestMetricsAllocations checks the allocations of a nil *Metrics, and of a series that already exists.
func TestMetricsAllocations(t *testing.T) {
	for name, m := range map[string]*metrics.Metrics{"off": nil, "on": metrics.New(time.Now)} {
		m.Measure(took, 1, metrics.Attr{Key: "a", Value: "b"})
		if n := testing.AllocsPerRun(100, func() { m.Measure(took, 1, metrics.Attr{Key: "a", Value: "b"}) }); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
