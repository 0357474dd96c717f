package run

import (
	"fmt"
	"slices"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// A Budget limits what one run can use in total, whichever processes advance it. A zero field sets no limit. Usage is
// counted from the run's events. A model call does not count if its process died before it recorded the answer.
type Budget struct {
	Tokens  int              // tokens of all model calls, input and output
	Effects int              // number of effects that are started
	Money   int64            // cost of the model calls, in millionths of the currency of Prices
	Prices  map[string]Price // by model name; "" applies to any other model
}

// Price is the price of a model, in millionths of a currency for a million tokens. A price of 0.30 dollars for a
// million tokens is 300,000.
type Price struct {
	Input    int64 // tokens of a request
	Cached   int64 // tokens of the request that the service had cached
	Output   int64
	Thoughts int64
}

// CodeRunBudget is the error code of a run that ended because its budget is used up, and of a call that was not run for
// that reason.
const CodeRunBudget fault.Code = "run_budget"

// The names of a budget's limits.
const (
	LimitTokens  = "tokens"
	LimitEffects = "effects"
	LimitMoney   = "money"
)

// Overrun identifies the budget limit that a run reached.
type Overrun struct {
	Limit string `json:"limit"`
	Used  int64  `json:"used"` // so far; the next request may exceed the rest
	Max   int64  `json:"max"`
}

// Fault returns the error of a run that has reached the limit, or nil if o is nil.
func (o *Overrun) Fault() *fault.Error {
	switch {
	case o == nil:
		return nil
	case o.Limit == LimitEffects:
		return fault.New(fault.Policy, CodeRunBudget,
			"This would exceed the limit on changes in one request (%d).", o.Max)
	case o.Limit == LimitMoney:
		return fault.New(fault.Policy, CodeRunBudget, "This has cost %s of its budget of %s, and the next step "+
			"may cost more than the rest.", units(o.Used), units(o.Max))
	}
	return fault.New(fault.Policy, CodeRunBudget, "This has used %d of its %d tokens, and the next step may "+
		"need more than the rest.", o.Used, o.Max)
}

// units formats millionths of a currency as a decimal number of units.
func units(micros int64) string { return fmt.Sprintf("%d.%06d", micros/1_000_000, micros%1_000_000) }

// CheckRequest returns the limit that one more model call may exceed, or nil if none. name is the model, prompt is the
// number of tokens in the request, and output is the maximum number of tokens in the answer.
func (b Budget) CheckRequest(s *State, name string, prompt, output int) *Overrun {
	if b.Tokens > 0 && s.Tokens+prompt+output > b.Tokens {
		return &Overrun{LimitTokens, int64(s.Tokens), int64(b.Tokens)}
	}
	p := b.price(name)
	most := millions(prompt, max(p.Input, p.Cached)) + millions(output, max(p.Output, p.Thoughts))
	if b.Money > 0 && s.Cost+micros(most) > b.Money {
		return &Overrun{LimitMoney, s.Cost, b.Money}
	}
	return nil
}

// Cost returns the cost of one model call in millionths of the currency, rounded up. estimated is the number of tokens
// of a call that the service did not count.
func (b Budget) Cost(name string, u model.Usage, estimated int) int64 {
	p, total := b.price(name), plausible(max(estimated, u.Total))
	prompt, output, thoughts := plausible(u.Prompt), plausible(u.Output), plausible(u.Thoughts)
	cached := min(plausible(u.Cached), prompt)
	uncounted := max(total-prompt-output-thoughts, 0)
	return micros(millions(prompt-cached, p.Input) + millions(cached, p.Cached) + millions(output, p.Output) +
		millions(thoughts, p.Thoughts) + millions(uncounted, max(p.Input, p.Output)))
}

func (b Budget) price(name string) Price {
	if p, ok := b.Prices[name]; ok {
		return p
	}
	return b.Prices[""]
}

// Priced reports whether the model's price is known. It is also true if the budget does not limit money.
func (b Budget) Priced(name string) bool {
	_, own := b.Prices[name]
	_, other := b.Prices[""]
	return b.Money == 0 || own || other
}

// Limits of the factors. With them, no product and no sum overflows 64 bits.
const (
	MaxPrice  = 1e10    // ten thousand units of the currency for a million tokens
	maxTokens = 1 << 26 // of one call
)

// plausible returns a reported number of tokens, limited to the range 0 to maxTokens.
func plausible(tokens int) int { return min(max(tokens, 0), maxTokens) }

// millions returns the cost of tokens in millionths of a millionth of the currency.
func millions(tokens int, price int64) int64 {
	return int64(plausible(tokens)) * min(max(price, 0), MaxPrice)
}

// micros converts the result of millions to millionths of the currency, rounded up.
func micros(millions int64) int64 { return (millions + 999_999) / 1_000_000 }

// Effects returns the number of effects that the run has started. A repeated attempt does not count again.
func (s *State) Effects() (n int) {
	for _, a := range s.Actions {
		if a.SideEffect && (a.Started.Attempt > 0 || a.Kind == KindCall) {
			n++
		}
	}
	return n
}

// EffectsUsedUp reports whether the run has started as many effects as its budget allows.
func (t Terms) EffectsUsedUp(s *State) bool {
	return t.Budget.Effects > 0 && s.Effects() >= t.Budget.Effects
}

// Unaffordable returns the calls of the newest turn that are not run because the run has started as many effects as its
// budget allows. why is the reason, and becomes the answer to these calls.
func (t Terms) Unaffordable(s *State) (rest []*Action, why *Overrun) {
	if !t.EffectsUsedUp(s) {
		return nil, nil
	}
	for _, a := range s.Current() {
		if a.SideEffect && a.notBegun() && a.Started.Attempt == 0 && a.Kind != KindCall {
			rest = append(rest, a)
		}
	}
	return rest, t.effectsOverrun(s)
}

func (t Terms) effectsOverrun(s *State) *Overrun {
	return &Overrun{LimitEffects, int64(s.Effects()), int64(t.Budget.Effects)}
}

// CanAfford reports whether the budget of effects allows the call to start.
func (t Terms) CanAfford(s *State, a *Action) bool {
	rest, _ := t.Unaffordable(s)
	return !slices.Contains(rest, a)
}
