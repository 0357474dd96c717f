package run

import (
	"fmt"
	"slices"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/model"
)

// A Budget bounds what one run may use, from its beginning to its end, in however many processes it is moved; what is 0
// is not bounded. What was used is counted from the run's own events. A call of the model whose process died before it
// had recorded the answer is on no record, and does not count.
type Budget struct {
	Tokens  int              // of all calls of the model, what they read and what they write
	Effects int              // that are begun
	Money   int64            // for calls of the model, in millionths of the currency that Prices are in
	Prices  map[string]Price // by the name that a model is asked by; "": of any other
}

// Price is what a model costs: millionths of a currency for a million tokens. 0.30 dollars a million are 300,000.
type Price struct {
	Input    int64 // tokens of a request
	Cached   int64 // those of them that the service had cached
	Output   int64
	Thoughts int64
}

// CodeRunBudget is the code of a run that was ended because its budget does not reach any further, and of a call that
// was not carried out for that reason.
const CodeRunBudget fault.Code = "run_budget"

// The names of a budget's limits.
const (
	LimitTokens  = "tokens"
	LimitEffects = "effects"
	LimitMoney   = "money"
)

// Overrun says which limit of its budget a run has come to.
type Overrun struct {
	Limit string `json:"limit"`
	Used  int64  `json:"used"` // so far; what the next request may need does not fit in beside it
	Max   int64  `json:"max"`
}

// Fault returns the error of a run that has come to the limit. It is nil where o is.
func (o *Overrun) Fault() *fault.Error {
	switch {
	case o == nil:
		return nil
	case o.Limit == LimitEffects:
		return fault.New(fault.Policy, CodeRunBudget,
			"Of what has an effect one request may do at most %d, and this would be one more.", o.Max)
	case o.Limit == LimitMoney:
		return fault.New(fault.Policy, CodeRunBudget, "This has cost %s of the %s that it may cost, and its next "+
			"step may need more than what is left.", units(o.Used), units(o.Max))
	}
	return fault.New(fault.Policy, CodeRunBudget, "This has used %d of the %d tokens that it may use, and its next "+
		"step may need more than what is left.", o.Used, o.Max)
}

// units returns millionths of a currency as units of it.
func units(micros int64) string { return fmt.Sprintf("%d.%06d", micros/1_000_000, micros%1_000_000) }

// CheckRequest returns the limit that the run may exceed if the model with the name is asked once more, with a request
// of so many tokens and an answer of at most output tokens, or nil.
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

// Cost returns what a call of the model with the name has cost, in millionths of the currency and rounded up. estimated
// is the number of tokens where the service has not counted them.
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

// Priced reports whether it is known what a call of the model with the name costs, or does not matter.
func (b Budget) Priced(name string) bool {
	_, own := b.Prices[name]
	_, other := b.Prices[""]
	return b.Money == 0 || own || other
}

// Bounds of what is multiplied, so that no product and no sum of them is too large for 64 bits.
const (
	MaxPrice  = 1e10    // ten thousand units of the currency for a million tokens
	maxTokens = 1 << 26 // of one call
)

// plausible returns the number of tokens that a service reports, as far as it can be true of one call.
func plausible(tokens int) int { return min(max(tokens, 0), maxTokens) }

// millions returns what the tokens cost, in millionths of a millionth of the currency.
func millions(tokens int, price int64) int64 {
	return int64(plausible(tokens)) * min(max(price, 0), MaxPrice)
}

// micros returns that in millionths, rounded up.
func micros(millions int64) int64 { return (millions + 999_999) / 1_000_000 }

// Effects returns how many effects were begun in the run. One that is tried again counts once.
func (s *State) Effects() (n int) {
	for _, a := range s.Actions {
		if a.SideEffect && (a.Started.Attempt > 0 || a.Kind == KindCall) {
			n++
		}
	}
	return n
}

// EffectsUsedUp reports whether the run has begun as many effects as it may.
func (t Terms) EffectsUsedUp(s *State) bool {
	return t.Budget.Effects > 0 && s.Effects() >= t.Budget.Effects
}

// Unaffordable returns the calls of the newest turn that will not be carried out because the run has begun as many
// effects as it may, and why: that is the answer to them.
func (t Terms) Unaffordable(s *State) (rest []*Action, why *Overrun) {
	if !t.EffectsUsedUp(s) {
		return nil, nil
	}
	for _, a := range s.Current() {
		if a.SideEffect && a.notBegun() && a.Kind != KindCall {
			rest = append(rest, a)
		}
	}
	return rest, t.effectsOverrun(s)
}

func (t Terms) effectsOverrun(s *State) *Overrun {
	return &Overrun{LimitEffects, int64(s.Effects()), int64(t.Budget.Effects)}
}

// CanAfford reports whether the call may be begun, as far as the number of effects goes.
func (t Terms) CanAfford(s *State, a *Action) bool {
	rest, _ := t.Unaffordable(s)
	return !slices.Contains(rest, a)
}
