package actions

import (
	"context"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/tools/action"
)

// Handlers returns the handlers of this folder's actions. They are registered in shared/app/actions/handlers.go.
func Handlers() action.Handlers {
	return Does{ShippingQuote: quote}.Handlers()
}

// quote returns a price by weight, which is higher abroad.
func quote(_ context.Context, _ tool.Call, in ShippingQuoteInput) (ShippingQuoteOutput, error) {
	out := ShippingQuoteOutput{Cents: 390 + in.Grams/1000*150, Days: 2}
	if !strings.EqualFold(in.Country, "DE") {
		out.Cents, out.Days = 2*out.Cents, 5
	}
	return out, nil
}
