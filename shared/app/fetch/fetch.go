// Package fetch is the part of the functions that fetch pages of the web for agents.
package fetch

import (
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/fetch"
	"github.com/countersign-run/countersign/shared/tools/web"
)

// Part fetches pages of the public web, where WEB_TOOLS is on.
var Part = With(fetch.Options{})

// With is [Part] with options that no setting has: tests play the internet with them, and scripts/dev opens a site of
// its own.
func With(o fetch.Options) app.Part {
	return app.Part{Link: func(c *app.Clients) {
		c.Pages = func(cfg config.Config) web.Fetcher {
			if !cfg.WebTools {
				return nil
			}
			return fetch.New(o)
		}
	}}
}
