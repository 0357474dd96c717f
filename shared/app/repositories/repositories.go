// Package repositories is the part for GitHub's tools: it offers them to the planner, evaluates and shows their calls,
// and executes them. Part github provides the accounts; without it the tools cannot act.
package repositories

import (
	"time"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/tools"
	"github.com/countersign-run/countersign/shared/base/netguard"
	"github.com/countersign-run/countersign/shared/tools/docker"
	"github.com/countersign-run/countersign/shared/tools/github"
)

// Part has GitHub's tools, and checks out repositories into containers. Parts also has the tools that work in
// containers.
var (
	Part  = With(0)
	Parts = app.Part{Of: []app.Part{Part, tools.Containers}}
)

// With returns Part with another first pause between two looks at checks; 0 means the usual one.
func With(pause time.Duration) app.Part {
	return app.Part{Name: "repositories", Tools: func(b *app.Builder) error { return add(b, pause) }}
}

// add adds the tools. If there are containers, files can be committed from them.
func add(b *app.Builder, pause time.Duration) error {
	o := github.Options{Endpoint: b.Config.GitHubAPIURL + "/", Now: b.Now, Pause: pause,
		Strangers: netguard.Strangers(b.Config.OnCloudRun)}
	b.Checkouts = github.NewSnapshots(b.GitHub, o)
	if b.Config.HasContainers() {
		o.Containers = reader(b.Engine)
	}
	return b.Add(github.New(b.GitHub, o))
}

// reader returns a reader of files in containers.
func reader(engine app.Engine) docker.Reader {
	if engine == nil {
		return docker.Reader{}
	}
	return docker.Reader{Engine: engine}
}
