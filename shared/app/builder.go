package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/accounts/github"
	"github.com/countersign-run/countersign/shared/accounts/google"
	"github.com/countersign-run/countersign/shared/agent/registry"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/engine/records"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
	"github.com/countersign-run/countersign/shared/tools/command"
	"github.com/countersign-run/countersign/shared/tools/docker"
	"github.com/countersign-run/countersign/shared/tools/mcpfile"
	"github.com/countersign-run/countersign/shared/tools/web"
)

// Builder is an app while its parts are added. A client that no part has opened is nil.
type Builder struct {
	Config config.Config
	Log    *slog.Logger
	Now    func() time.Time
	Store  store.Store

	Env unit.Env // environment of the engine
	API *api.API // dependencies of the routes

	Google    Accounts      // accounts for Google's tools; without a part, the tools cannot act
	GitHub    Accounts      // accounts for GitHub's tools; without a part, the tools cannot act
	Hosts     Hosts         // connections to users' hosts
	Engine    Engine        // runs containers
	Pages     web.Fetcher   // fetches web pages
	Checkouts docker.Source // reads a repository's files for a container

	// Markdown converts the HTML of e-mails (gmail.Options).
	Markdown func(ctx context.Context, html string) (text string, cut bool, err error)

	queue     queue.Queue // the queue that the parts opened; tests wrap Env.Queue
	telemetry []Telemetry
	closers   []io.Closer
}

// Hosts opens connections to users' hosts (package remote).
type Hosts interface {
	command.Hosts
	io.Closer

	// Scan and Check implement hosts.Remote. That package is linked only into programs that store hosts.
	Scan(ctx context.Context, uid, jump, address string, port int) ([]terminal.HostKey, error)
	Check(ctx context.Context, h terminal.Host) (supervisor.Facts, error)
}

// Engine runs containers (package docker).
type Engine interface {
	docker.Engine
	io.Closer
}

// Closes makes the app close c when it closes, before everything opened earlier.
func (b *Builder) Closes(c io.Closer) { b.closers = append(b.closers, c) }

// Sends makes the app send the telemetry after its requests, and close it.
func (b *Builder) Sends(t Telemetry) {
	b.telemetry = append(b.telemetry, t)
	b.Closes(t)
}

// Add adds tools for agents. It returns an error if a tool's name is taken.
func (b *Builder) Add(tools tool.Set) error {
	for name, t := range tools {
		if b.Env.Tools[name] != nil {
			return fmt.Errorf("tool %s: added twice", name)
		}
		b.Env.Tools[name] = t
	}
	return nil
}

// modelPatience is how long a run continues to ask a model without capacity. Gemini's limits apply to a minute or
// to a day, and a run does not wait for the next day.
const modelPatience = time.Hour

// newBuilder returns a Builder. st can be nil.
func newBuilder(cfg config.Config, st store.Store, now func() time.Time, log *slog.Logger) *Builder {
	rec := &records.Records{Store: st, Now: now, Retention: cfg.Retention, AuditDays: cfg.AuditDays}
	return &Builder{Config: cfg, Log: log, Now: now, Store: st,
		Google: readOnlyAccounts{st, google.Provider}, GitHub: readOnlyAccounts{st, github.Provider},
		Env: unit.Env{Store: st, Tools: tool.Set{}, Rules: cfg.Rules, UndoWindow: cfg.Hold,
			ModelPatience: modelPatience, AuditDays: cfg.AuditDays,
			UserLimits: run.Limits{RunsPerMinute: cfg.MaxRunsPerMinute, CallsPerDay: cfg.MaxModelCallsPerDay,
				TokensPerDay: cfg.MaxTokensPerDay},
			Console: cfg.ConsoleURL, Reminding: reminding(cfg), Log: log, Now: now},
		API: &api.API{Records: rec, Expiry: expiry(cfg, rec), BuiltIn: slices.Concat(BuiltIn, ownNames),
			Origins: cfg.AllowedOrigins, PublicURL: cfg.PublicURL, MCPURL: cfg.MCPURL,
			Subscription: cfg.PushSubscription, Log: log, Budget: cfg.FunctionTimeout, Concurrency: cfg.Concurrency}}
}

// expiry returns the deletion of expired records, or nil if the store expires them itself, as Firestore does.
func expiry(cfg config.Config, rec *records.Records) *records.Expiry {
	if cfg.Store != "embedded" || cfg.AuditDays == 0 {
		return nil
	}
	return &records.Expiry{Records: rec}
}

// build runs all stages of the parts.
func (b *Builder) build(ctx context.Context, parts []Part, o options) error {
	if err := b.begin(o); err != nil {
		return err
	}
	if err := each(parts, func(p Part) error { return p.Open(ctx, b) }); err != nil {
		return err
	}
	servers, err := b.offer(parts)
	if err != nil {
		return err
	}
	if !o.checked {
		warnUnused(b.Config, b.Log)
		WarnUnbound(b.Log, b.API.Actions)
	}
	if err := each(parts, func(p Part) error { return p.Servers(b, servers) }); err != nil {
		return err
	}
	if err := b.start(ctx, o); err != nil {
		return err
	}
	return each(parts, func(p Part) error { return p.Serve(b) })
}

// begin opens what every program has: the queue and the checks of callers' tokens.
func (b *Builder) begin(o options) (err error) {
	b.Closes(b.Store)
	b.Env.Function = o.function
	b.Env.Queue = openQueue(b.Config, b.Store, o, b.Log)
	b.Closes(b.Env.Queue)
	if b.Env.Decisions, err = openDecisions(b.Config); err != nil {
		return err
	}
	if b.Env.Strong, err = OpenStrong(b.Config); err != nil {
		return err
	}
	b.API.Users, b.API.Agents, b.API.Push, err = openAuth(b.Config, b.Now)
	return err
}

// offer adds the tools of the parts, and the agents that use them. It returns the operator's MCP servers. It opens no
// client, so the check of names at the start can use it.
func (b *Builder) offer(parts []Part) ([]mcpfile.Server, error) {
	if err := each(parts, func(p Part) error { return p.Tools(b) }); err != nil {
		return nil, err
	}
	servers, err := readServers(b.Config, b.Env.Tools, b.Log)
	if err != nil {
		return nil, err
	}
	b.Env.Agents, err = openAgents(b.Config, b.Env.Tools, servers, declared(parts))
	return servers, err
}

// declared returns the part that reads the operator's agents, or one that returns none.
func declared(parts []Part) DeclaredAgents {
	for _, p := range parts {
		if p.Agents != nil {
			return p.Agents
		}
	}
	return func(config.Config, tool.Set, []mcpfile.Server, registry.Agent, registry.Agent) ([]registry.Agent, error) {
		return nil, nil
	}
}

// start creates the engine from what the parts have added.
func (b *Builder) start(ctx context.Context, o options) error {
	mdl := b.Env.Model
	b.queue = b.Env.Queue
	o.loop(&b.Env)
	if err := quarantine(ctx, b.Store, &b.Env); err != nil {
		return err
	}
	l := loop.New(b.Env)
	b.API.Loop = l
	b.API.Plans = openPlanner(b.Config, l, b.API.GitHub != nil || b.API.Token != nil)
	b.API.Health = health(b.Config, mdl, executableTools(l.Tools, b.API.Actions))
	return nil
}

// close closes everything that was opened, in reverse order.
func (b *Builder) close() error {
	var errs []error
	for _, c := range slices.Backward(b.closers) {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// each calls do for each part until an error.
func each(parts []Part, do func(Part) error) error {
	for _, p := range parts {
		if err := do(p); err != nil {
			return err
		}
	}
	return nil
}
