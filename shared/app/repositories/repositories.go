// Package repositories is the part of the functions that know the tools of GitHub: to offer them to the planner, to
// judge and show their calls, and to carry them out. Whose accounts they act in, the part github says; without it they
// act in none.
package repositories

import (
	"time"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/tool"
	"github.com/countersign-run/countersign/shared/tools/github"
)

// Part has the tools of GitHub.
var Part = app.Part{Link: func(c *app.Clients) { c.Repositories = Tools }}

// Tools returns them.
func Tools(cfg config.Config, as app.Accounts, now func() time.Time) tool.Set {
	return github.New(as, github.Options{Endpoint: cfg.GitHubAPIURL + "/", Now: now})
}
