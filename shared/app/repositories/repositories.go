// Package repositories is the part of the functions that know the tools of GitHub: to offer them to the planner, to
// judge and show their calls, and to carry them out. Whose accounts they act in, the part github says; without it they
// act in none.
package repositories

import (
	"time"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/tool"
	"github.com/countersign-run/countersign/shared/tools/docker"
	"github.com/countersign-run/countersign/shared/tools/github"
)

// Part has the tools of GitHub, and what checks repositories out into containers.
var Part = app.Part{Link: func(c *app.Clients) { c.Repositories, c.Checkouts = Tools, checkouts }}

// Tools returns them. Where there are containers, files can be committed from them; engine is nil in functions that
// carry no call out.
func Tools(cfg config.Config, as app.Accounts, engine app.Engine, now func() time.Time) tool.Set {
	o := options(cfg, now)
	if cfg.DockerHost != "" && len(cfg.DockerImages) > 0 {
		o.Containers = reader(engine)
	}
	return github.New(as, o)
}

func options(cfg config.Config, now func() time.Time) github.Options {
	return github.Options{Endpoint: cfg.GitHubAPIURL + "/", Now: now}
}

// checkouts returns what reads the files that a container begins with.
func checkouts(cfg config.Config, as app.Accounts, now func() time.Time) docker.Source {
	return github.NewSnapshots(as, options(cfg, now))
}

// reader returns what reads containers' files.
func reader(engine app.Engine) docker.Reader {
	if engine == nil {
		return docker.Reader{}
	}
	return docker.Reader{Engine: engine}
}
