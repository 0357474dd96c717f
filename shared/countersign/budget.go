package countersign

import (
	"errors"
	"maps"
	"slices"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// Budget limits one run from its start to its end, in any number of processes. A field that is 0 sets no limit.
//
// Before each request to the model, the most that the request may need is compared with the rest of the budget. That
// is the sum of the tokens that the service counted for the previous request, an estimate for the text added since,
// and Options.MaxOutputTokens. A run therefore exceeds its budget by at most one answer, and only if MaxOutputTokens
// is not set.
//
// Use is counted from the stored events. If a process is killed before it stores an answer of the model, that answer
// does not count.
type Budget struct {
	Tokens  int              // of all requests and answers, thoughts included
	Effects int              // effects that were started; retries of one effect count once
	Money   int64            // the model's costs, in millionths of the currency of Prices
	Prices  map[string]Price // by the model's name; "" is for all other models
}

// Price is the price of a model in millionths of a currency for a million tokens: 0.30 dollars for a million are
// 300_000.
type Price struct {
	Input    int64 // of a request
	Cached   int64 // of the cached part of a request
	Output   int64 // of an answer
	Thoughts int64
}

// BudgetError ends a run that has reached a limit of Options.Budget. Completed effects remain. It is also an [*Error]
// with the code run_budget.
type BudgetError struct {
	Limit string // tokens, effects or money
	Used  int64  // used so far; the next request would exceed the limit
	Max   int64

	Result *Result // the run's last text and total use

	err *Error
}

// Error names the limit and how much of it was used.
func (e *BudgetError) Error() string { return e.err.Error() }

// Unwrap returns the [*Error].
func (e *BudgetError) Unwrap() error { return e.err }

// budgetError converts the error of a run to a [*BudgetError] if the run ended for its budget.
func budgetError(v *run.View, res *Result, err *Error) error {
	if o := v.Overrun; o != nil {
		return &BudgetError{Limit: o.Limit, Used: o.Used, Max: o.Max, Result: res, err: err}
	}
	return err
}

// setBudget checks the budget and sets it on the agent.
func (c *core) setBudget() error {
	b := c.options.Budget
	var wrong []error
	needs := func(ok bool, field, format string, args ...any) {
		if !ok {
			wrong = append(wrong, fault.Invalid(field, format, args...))
		}
	}
	needs(b.Tokens >= 0, "Budget.Tokens", "%d; must be 1 or more, or 0 for no limit", b.Tokens)
	needs(b.Effects >= 0, "Budget.Effects", "%d; must be 1 or more, or 0 for no limit", b.Effects)
	needs(b.Money >= 0, "Budget.Money", "%d; must be 1 or more, or 0 for no limit", b.Money)
	limit := run.Budget{Tokens: b.Tokens, Effects: b.Effects, Money: b.Money, Prices: map[string]run.Price{}}
	for _, name := range slices.Sorted(maps.Keys(b.Prices)) {
		p := b.Prices[name]
		needs(min(p.Input, p.Cached, p.Output, p.Thoughts) >= 0 &&
			max(p.Input, p.Cached, p.Output, p.Thoughts) <= run.MaxPrice, "Budget.Prices",
			"a price of %q is less than 0, or more than %d", name, int64(run.MaxPrice))
		limit.Prices[name] = run.Price(p)
	}
	model := c.options.Model // the name of the provider's default model is not known yet
	needs(model == "" && len(b.Prices) > 0 || limit.Priced(model), "Budget.Prices",
		"there is no price for the model, and Money cannot be bounded without one")
	n := c.options.MaxOutputTokens
	needs(n >= 0 && n <= maxOutputTokens, "MaxOutputTokens",
		"%d; must be 1 to %d, or 0 for the service's own",
		n, maxOutputTokens)
	c.definition.Limits.Budget, c.definition.Model.MaxOutputTokens = limit, int32(min(max(n, 0), maxOutputTokens))
	return errors.Join(wrong...)
}

const maxOutputTokens = 1 << 20
