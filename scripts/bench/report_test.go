package main

import (
	"strings"
	"testing"
	"time"
)

func TestVerdict(t *testing.T) {
	goal := func(goal float64, most bool) row {
		return row{work: text, clients: 1, figure: p50, goal: goal, most: most, than: beside(text, 1)}
	}
	for name, c := range map[string]struct {
		ours float64
		row  row
		want string
	}{
		"as quick as it may be":   {18, goal(1.8, true), "≤ 1.8 × bare; is 1.80, met"},
		"too slow":                {19, goal(1.8, true), "≤ 1.8 × bare; is 1.90, **missed**"},
		"as many as there may be": {5, goal(0.5, false), "≥ 0.5 × bare; is 0.50, met"},
		"too few":                 {4, goal(0.5, false), "≥ 0.5 × bare; is 0.40, **missed**"},
		"without a goal":          {20, goal(0, true), "(is 2.00 × bare)"},
		"without a floor":         {20, row{work: text, clients: 1, figure: p50, goal: 1, than: beside(mail, 1)}, ""},
		"beside nothing": {20, row{work: text, clients: 1, figure: p50, goal: 20, most: true},
			"≤ 20; is 20.00, met"},
		"a tail": {20, row{work: text, clients: 1, figure: tail, goal: 20, most: true},
			"≤ 20; is 50.00, **missed**"},
	} {
		b := &bench{blocks: []block{{Contestant: bare, Work: text, Clients: 1, P50: 10},
			{Contestant: ours, Work: text, Clients: 1, P50: c.ours, P99: 1000}}}
		if got := b.verdict(c.row); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestMiddle(t *testing.T) {
	for _, c := range []struct {
		all  []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 2, 9}, 3}} {
		if got := middle(c.all); got != c.want {
			t.Errorf("the median of %v is %v, want %v", c.all, got, c.want)
		}
	}
}

func TestQuantile(t *testing.T) {
	var all []time.Duration
	for i := range 101 {
		all = append(all, time.Duration(i)*time.Millisecond)
	}
	if got := quantile(all, 0.99); got != 99 {
		t.Errorf("the 99th percentile is %v ms, want 99", got)
	}
}

// TestContestants checks that contestants that are not installed are left out, and that unknown ones are refused.
func TestContestants(t *testing.T) {
	list, err := options{dir: t.TempDir()}.contestants()
	if err != nil || len(list) != 2 || list[0].name != bare || list[1].name != ours {
		t.Errorf("%v and %v, want the bare handler and Countersign", list, err)
	}
	if _, err := (options{dir: t.TempDir(), only: []string{"nobody"}}).contestants(); err == nil ||
		!strings.Contains(err.Error(), "nobody") {
		t.Errorf("a contestant that does not exist: %v", err)
	}
}
