package run_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
)

var prices = map[string]run.Price{
	"flash": {Input: 300_000, Cached: 75_000, Output: 2_500_000, Thoughts: 3_000_000},
	"lite":  {Input: 100_000},
}

func TestCost(t *testing.T) {
	b := run.Budget{Money: 1, Prices: prices}
	for name, tt := range map[string]struct {
		model     string
		usage     model.Usage
		estimated int
		want      int64
	}{
		"input":                  {"flash", model.Usage{Prompt: 1_000_000}, 0, 300_000},
		"cached":                 {"flash", model.Usage{Prompt: 1_000_000, Cached: 400_000}, 0, 180_000 + 30_000},
		"output":                 {"flash", model.Usage{Output: 1000}, 0, 2500},
		"thoughts":               {"flash", model.Usage{Thoughts: 1000}, 0, 3000},
		"a part, rounded up":     {"flash", model.Usage{Prompt: 1}, 0, 1},
		"of another model":       {"lite", model.Usage{Prompt: 10, Output: 1000}, 0, 1},
		"of none that is known":  {"other", model.Usage{Prompt: 10, Output: 1000}, 0, 0},
		"a total and no parts":   {"flash", model.Usage{Total: 1000}, 0, 2500},
		"a total beside parts":   {"flash", model.Usage{Prompt: 10, Output: 2, Total: 12}, 0, 8},
		"not counted, estimated": {"flash", model.Usage{}, 1000, 2500},
		"absurd":                 {"flash", model.Usage{Prompt: math.MaxInt, Cached: math.MinInt}, 0, 20132660},
	} {
		if got := b.Cost(tt.model, tt.usage, tt.estimated); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
	other := run.Budget{Prices: map[string]run.Price{"": {Input: 1_000_000}}}
	if got := other.Cost("any", model.Usage{Prompt: 7}, 0); got != 7 {
		t.Errorf("cost at the price of any model: %d, want 7", got)
	}
}

func TestPriced(t *testing.T) {
	for name, want := range map[string]bool{"flash": true, "flash-lite": false, "": false} {
		if got := (run.Budget{Money: 1, Prices: prices}).Priced(name); got != want {
			t.Errorf("%q: %t; want got %v", name, got, want)
		}
	}
	if !(run.Budget{}).Priced("x") || !(run.Budget{Money: 1, Prices: map[string]run.Price{"": {}}}).Priced("x") {
		t.Error("Priced is false without a money limit, or with a price for any model")
	}
}

// TestCheckRequest checks that a request is allowed while it and the longest possible answer fit in the budget.
func TestCheckRequest(t *testing.T) {
	b := run.Budget{Tokens: 1000, Money: 5000, Prices: prices}
	for name, tt := range map[string]struct {
		used           run.State
		prompt, output int
		want           *run.Overrun
	}{
		"the first":            {run.State{}, 100, 900, nil},
		"one too large":        {run.State{}, 101, 900, &run.Overrun{Limit: "tokens", Used: 0, Max: 1000}},
		"the last that fits":   {run.State{Tokens: 800, Cost: 100}, 150, 50, nil},
		"one beyond":           {run.State{Tokens: 800}, 151, 50, &run.Overrun{Limit: "tokens", Used: 800, Max: 1000}},
		"the last of money":    {run.State{Cost: 4670}, 100, 100, nil}, // 30 and 300
		"one beyond the money": {run.State{Cost: 4671}, 100, 100, &run.Overrun{Limit: "money", Used: 4671, Max: 5000}},
	} {
		got := b.CheckRequest(&tt.used, "flash", tt.prompt, tt.output)
		if (got == nil) != (tt.want == nil) || got != nil && *got != *tt.want {
			t.Errorf("%s: %+v, want %+v", name, got, tt.want)
		}
		if f := got.Fault(); got != nil && (f.Class != fault.Policy || f.Code != run.CodeRunBudget) {
			t.Errorf("%s: %v", name, f)
		}
	}
	if o := (run.Budget{}).CheckRequest(&run.State{Tokens: 1 << 40, Cost: 1 << 40}, "x", 1<<30, 1<<30); o != nil {
		t.Errorf("without a budget: %+v", o)
	}
}

// TestBudgetExceededByOneAnswer sends requests to a model while the budget allows it. Requests are as long as
// estimated, and no answer exceeds the maximum.
func TestBudgetExceededByOneAnswer(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := run.Budget{Tokens: rapid.IntRange(0, 5000).Draw(t, "tokens"),
			Money:  rapid.Int64Range(0, 5000).Draw(t, "money"),
			Prices: prices}
		longest := rapid.IntRange(1, 500).Draw(t, "longest")
		said := rapid.SampledFrom([]int{0, longest}).Draw(t, "said") // 0: the service's own limit, which is unknown
		s := &run.State{}
		for range 100 {
			prompt := rapid.IntRange(1, 500).Draw(t, "prompt")
			if b.CheckRequest(s, "flash", prompt, said) != nil {
				break
			}
			answer := rapid.IntRange(0, longest).Draw(t, "answer")
			thoughts := rapid.IntRange(0, answer).Draw(t, "thoughts")
			turn := run.Turn{Usage: model.Usage{Prompt: prompt, Cached: rapid.IntRange(0, prompt).Draw(t, "cached"),
				Output: answer - thoughts, Thoughts: thoughts, Total: prompt + answer}}
			s.Tokens, s.Cost = s.Tokens+turn.Tokens(), s.Cost+b.Cost("flash", turn.Usage, 0)
		}
		over := (longest - said)
		if b.Tokens > 0 && s.Tokens > b.Tokens+over {
			t.Fatalf("%d tokens; the budget is %d, and an answer has at most %d", s.Tokens, b.Tokens, longest)
		}
		if b.Money > 0 && s.Cost > b.Money+int64(over)*3+1 {
			t.Fatalf("cost %d; the budget is %d, and an answer has at most %d tokens at 3", s.Cost, b.Money, longest)
		}
	})
}
