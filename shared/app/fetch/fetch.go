// Package fetch is the part of the functions that fetch pages of the web for agents.
package fetch

import (
	"context"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/tools/fetch"
)

// Part fetches pages of the public web, where WEB_TOOLS is on.
var Part = With(fetch.Options{})

// With is [Part] with options that no setting has: tests play the internet with them, and scripts/dev opens a site of
// its own.
func With(o fetch.Options) app.Part {
	return app.Part{Name: "fetch", Open: func(_ context.Context, b *app.Builder) error {
		if b.Config.WebTools {
			b.Pages = fetch.New(o)
		}
		return nil
	}}
}
