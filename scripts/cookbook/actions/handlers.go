package actions

import (
	"context"
	"strings"

	"github.com/countersign-run/countersign/shared/action"
	"github.com/countersign-run/countersign/shared/tool"
)

// Handlers are the actions of this folder. Where they are plugged in: shared/app/actions/handlers.go.
func Handlers() action.Handlers {
	return Does{ShippingQuote: quote}.Handlers()
}

// quote is a price by weight, and more abroad.
func quote(_ context.Context, _ tool.Call, in ShippingQuoteInput) (ShippingQuoteOutput, error) {
	out := ShippingQuoteOutput{Cents: 390 + in.Grams/1000*150, Days: 2}
	if !strings.EqualFold(in.Country, "DE") {
		out.Cents, out.Days = 2*out.Cents, 5
	}
	return out, nil
}
