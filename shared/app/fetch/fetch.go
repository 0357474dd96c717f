// Package fetch is the part that fetches web pages for agents.
package fetch

import (
	"context"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/tools/fetch"
)

// Part fetches public web pages if WEB_TOOLS is on, and reads the HTML of e-mails if GMAIL_SEARCH is on.
var Part = With(fetch.Options{})

// With is [Part] with options that no setting has: tests simulate the internet with them, and scripts/dev adds its own
// site.
func With(o fetch.Options) app.Part {
	return app.Part{Name: "fetch", Open: func(_ context.Context, b *app.Builder) error {
		if b.Config.WebTools {
			b.Pages = fetch.New(o)
		}
		if b.Config.GmailSearch {
			b.Markdown = fetch.Markdown
		}
		return nil
	}}
}
