// Package repositories is the part of the functions that know the tools of GitHub: to offer them to the planner, to
// judge and show their calls, and to carry them out. Whose accounts they act in, the part github says; without it they
// act in none.
package repositories

import (
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/tools"
	"github.com/countersign-run/countersign/shared/tools/docker"
	"github.com/countersign-run/countersign/shared/tools/github"
)

// Part has the tools of GitHub, and what checks repositories out into containers. Parts also has the tools that work in
// containers.
var (
	Part  = app.Part{Name: "repositories", Tools: add}
	Parts = app.Part{Of: []app.Part{Part, tools.Containers}}
)

// add adds the tools. Where there are containers, files can be committed from them.
func add(b *app.Builder) error {
	o := github.Options{Endpoint: b.Config.GitHubAPIURL + "/", Now: b.Now}
	b.Checkouts = github.NewSnapshots(b.GitHub, o)
	if b.Config.DockerHost != "" && len(b.Config.DockerImages) > 0 {
		o.Containers = reader(b.Engine)
	}
	return b.Add(github.New(b.GitHub, o))
}

// reader returns what reads containers' files.
func reader(engine app.Engine) docker.Reader {
	if engine == nil {
		return docker.Reader{}
	}
	return docker.Reader{Engine: engine}
}
