package load

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/countersign-run/countersign/scripts/prove/proof"
)

// Report is the result of a measurement.
type Report struct {
	Name     string
	Settings map[string]any
	Figures  map[string]any
	Targets  []Target
	Problems []string // faults of Countersign in the final state
	Limited  string   // what limited the measurement
}

// Target is one figure, and whether it met its target.
type Target struct {
	What, Want string
	Got        float64
	Met        bool
}

// to adds the measurement to the proof's report.
func (rep *Report) to(r *proof.Run) {
	for _, p := range rep.Problems {
		r.Finding(rep.Name, "%s", p)
	}
	for _, t := range rep.Targets {
		if t.Met {
			r.Held(rep.Name, "%s: %v, %s", t.What, t.Got, t.Want)
		} else {
			r.Finding(rep.Name, "%s: %v, want %s", t.What, t.Got, t.Want)
		}
	}
	r.Figure(rep.Name+" settings", rep.Settings)
	r.Figure(rep.Name+" limited by", rep.Limited)
	for name, f := range rep.Figures {
		r.Figure(rep.Name+" "+name, f)
	}
}

func newReport(m measurement) *Report {
	s := map[string]any{"store": m.options.Store, "cores": runtime.NumCPU(), "go": runtime.Version()}
	if m.options.For > 0 {
		s["for"] = m.options.For.String()
	}
	if m.options.Clients > 0 {
		s["clients"] = m.options.Clients
	}
	if m.options.Count > 0 {
		s["n"] = m.options.Count
	}
	return &Report{Name: m.name, Settings: s, Figures: map[string]any{}}
}

// atLeast and atMost compare a figure with its target.
func (r *Report) atLeast(what string, got, want float64) {
	r.Targets = append(r.Targets, Target{what, fmt.Sprintf(">= %v", want), round(got), got >= want})
}

func (r *Report) atMost(what string, got, want float64) {
	r.Targets = append(r.Targets, Target{what, fmt.Sprintf("<= %v", want), round(got), got <= want})
}

// conclude adds the figures that every measurement reports.
func (r *Report) conclude(g *env) {
	r.Figures["errors"], r.Figures["failures"] = g.errors.counts(), g.failed.counts()
	r.Figures["deliveries"], r.Figures["deliveriesNotTaken"] = g.relay.counts()
	r.Figures["deadLetters"] = g.relay.deadLetters()
}

// series is a list of durations, added by many goroutines.
type series struct {
	mu  sync.Mutex
	all []time.Duration
}

func (s *series) add(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, d)
}

func (s *series) since(t time.Time) { s.add(time.Since(t)) }

func (s *series) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

// ms returns the quantile in milliseconds; 1 is the longest.
func (s *series) ms(q float64) float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) == 0 {
		return 0
	}
	slices.Sort(s.all)
	i := int(math.Ceil(q*float64(len(s.all)))) - 1
	return float64(s.all[max(i, 0)].Microseconds()) / 1000
}

func (s *series) summary() map[string]any {
	return map[string]any{"count": s.count(), "p50": round(s.ms(0.50)), "p95": round(s.ms(0.95)),
		"p99": round(s.ms(0.99)), "max": round(s.ms(1))}
}

// round rounds a figure to two decimals.
func round(f float64) float64 { return math.Round(f*100) / 100 }

// tally counts by name, for many goroutines.
type tally struct {
	mu sync.Mutex
	n  map[string]int
}

func (t *tally) add(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.n == nil {
		t.n = map[string]int{}
	}
	t.n[name]++
}

func (t *tally) clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n = nil
}

func (t *tally) counts() map[string]int {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := map[string]int{}
	for name, n := range t.n {
		out[name] = n
	}
	return out
}

func (t *tally) sum() int {
	total := 0
	for _, n := range t.counts() {
		total += n
	}
	return total
}
