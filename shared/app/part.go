package app

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/countersign-run/countersign/shared/agents"
	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/journal"
	"github.com/countersign-run/countersign/shared/keeper"
	"github.com/countersign-run/countersign/shared/linking"
	"github.com/countersign-run/countersign/shared/loop"
	"github.com/countersign-run/countersign/shared/mcpfile"
	"github.com/countersign-run/countersign/shared/model"
	"github.com/countersign-run/countersign/shared/notice"
	"github.com/countersign-run/countersign/shared/queue"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/tool"
	"github.com/countersign-run/countersign/shared/tools/command"
	"github.com/countersign-run/countersign/shared/tools/docker"
	"github.com/countersign-run/countersign/shared/tools/web"
)

// Part is a part of a function: what must be configured for it, and the client that comes with it.
type Part struct {
	Needs config.Part    // empty where nothing must be configured
	Link  func(*Clients) // nil where no client comes with it

	// Check returns an error that stops the start beside a wrong setting, and logs what an operator should look at. It
	// may be nil.
	Check func(cfg config.Config, log *slog.Logger) error
}

// The parts that say who calls a function. The store is in every function and need not be named.
var (
	Users = Part{Needs: config.Users}
	Push  = Part{Needs: config.Push}
	Chat  = Part{Needs: config.Chat, Link: func(c *Clients) { c.Chat = true }}
)

// Clients opens the clients of a program's parts.
type Clients struct {
	Chat  bool // whether pages are answered
	Queue func(ctx context.Context, cfg config.Config) (queue.Queue, error)
	// Notices tells others of runs; nil where nobody is told.
	Notices func(ctx context.Context, cfg config.Config, st store.Store, now func() time.Time,
		log *slog.Logger) (Notices, error)
	// nil where a sweep goes on by itself
	Sweeper func(ctx context.Context, cfg config.Config) (queue.Sweeper, error)
	// nil where no model is configured
	Model   func(ctx context.Context, cfg config.Config) (model.Model, error)
	Actions func(cfg config.Config, now func() time.Time) (api.DeclaredActions, error) // nil where none are declared
	Tools   func(cfg config.Config, as Accounts, now func() time.Time) tool.Set
	Agents  DeclaredAgents
	// Terminals keeps users' hosts and terminals, and reaches them by hosts; nil in a program without them.
	Terminals func(ctx context.Context, cfg config.Config, st store.Store, hosts Hosts,
		now func() time.Time) (api.Hosts, error)
	// Commands returns the tools of agents that work on terminals. hosts is nil in functions that judge and show
	// commands and run none.
	Commands func(cfg config.Config, st store.Store, hosts Hosts) tool.Set
	// Hosts opens the connections to people's hosts; nil where terminals are off.
	Hosts func(ctx context.Context, cfg config.Config) (Hosts, error)
	// Web returns the tools that read the web. pages is nil in functions that judge and show calls and fetch nothing,
	// and mdl where no model is configured.
	Web func(cfg config.Config, pages web.Fetcher, mdl model.Model) tool.Set
	// Pages opens the client that fetches pages; nil where the web is off.
	Pages func(cfg config.Config) web.Fetcher
	// Containers returns the tools of agents that work in containers. engine is nil in functions that judge and show
	// calls and carry none out, and checkouts in those that know no repositories.
	Containers func(cfg config.Config, engine Engine, checkouts docker.Source) tool.Set
	// Checkouts returns what reads the files that a container begins with; nil in a program without repositories.
	Checkouts func(cfg config.Config, as Accounts, now func() time.Time) docker.Source
	// Engine opens the engine that runs containers; nil where none is configured.
	Engine func(cfg config.Config) (Engine, error)
	// Sockets carries terminals on these hosts over WebSockets; nil in a program without them.
	Sockets func(st store.Store, l *loop.Loop, hosts Hosts, log *slog.Logger) api.Sockets
	// Repositories returns the tools of GitHub, which the planner alone has. engine is as in Containers.
	Repositories func(cfg config.Config, as Accounts, engine Engine, now func() time.Time) tool.Set
	// GitHub opens the GitHub accounts that users have linked; nil where no GitHub App is configured.
	GitHub func(ctx context.Context, cfg config.Config, st store.Store, now func() time.Time) (*linking.Accounts, error)
	// Token returns the linked GitHub accounts, and for one user the account of a token; nil where none is configured.
	Token func(cfg config.Config, linked Accounts) (TokenAccounts, error)
	// Receipts opens the key that signs receipts; nil where none is configured.
	Receipts func(ctx context.Context, cfg config.Config) (api.Receipts, error)
	// Webhooks opens the operator's endpoints that are told of runs; nil in a program that tells none itself.
	Webhooks func(cfg config.Config, now func() time.Time) (api.Webhooks, error)
	// Traces sends the traces of runs; nil where no collector is configured, and in a program that moves no runs.
	Traces func(ctx context.Context, cfg config.Config, log *slog.Logger) (Traces, error)
	// Metrics sends what is measured of runs; nil where no collector is configured, and in a program that changes none.
	Metrics func(cfg config.Config, now func() time.Time, log *slog.Logger) Metrics
	// Devices opens what tells people on their devices; nil where no key is configured.
	Devices func(cfg config.Config, st store.Store, now func() time.Time, log *slog.Logger) (api.Devices, error)
	// Reminders opens what mails people what has waited; nil where nobody is mailed, and in a program without it.
	Reminders func(cfg config.Config, st store.Store, now func() time.Time) (journal.Reminders, error)
	// Servers opens the operator's MCP servers, whose tools come and go; nil where the file names none.
	Servers func(cfg config.Config, file []mcpfile.Server, now func() time.Time, log *slog.Logger) (Servers, error)
	// AgentDoor serves the agents of other programs; nil in a program without them.
	AgentDoor func(cfg config.Config, l *loop.Loop, log *slog.Logger) api.AgentDoor
	// nil where no OAuth client is configured
	Accounts func(ctx context.Context, cfg config.Config, st store.Store, tools tool.Set,
		now func() time.Time) (*linking.Accounts, error)
}

// Hosts opens connections to people's hosts (package remote).
type Hosts interface {
	command.Hosts
	io.Closer

	// These are hosts.Remote, whose package is linked only where hosts are kept.
	Scan(ctx context.Context, address string, port int) ([]terminal.HostKey, error)
	Check(ctx context.Context, h terminal.Host, open func(context.Context) ([]byte, error)) (keeper.Facts, error)
}

// Notices tells others of runs (package notice).
type Notices interface {
	notice.Publisher
	io.Closer
}

// Engine runs containers (package docker).
type Engine interface {
	docker.Engine
	io.Closer
}

// TokenAccounts are linked accounts, but for one user the account of a token (github.Accounts).
type TokenAccounts interface {
	Accounts
	api.Token
}

// Servers are MCP servers (package mcptools).
type Servers interface {
	journal.Served
	io.Closer
}

// DeclaredAgents returns the agents that the operator declares over the tools, and those of the servers. What they do
// not say is the assistant's, and of an agent of web pages what page says. Such an agent's instructions are its own
// alone, without what is shown on the page.
type DeclaredAgents func(cfg config.Config, tools tool.Set, servers []mcpfile.Server,
	assistant, page agents.Agent) ([]agents.Agent, error)

// none is a program with the store alone.
var none = Clients{
	Queue: func(context.Context, config.Config) (queue.Queue, error) { return queue.None{}, nil },
	Notices: func(context.Context, config.Config, store.Store, func() time.Time, *slog.Logger) (Notices, error) {
		return nil, nil
	},
	Devices: func(config.Config, store.Store, func() time.Time, *slog.Logger) (api.Devices, error) { return nil, nil },
	Reminders: func(config.Config, store.Store, func() time.Time) (journal.Reminders, error) {
		return nil, nil
	},
	Sweeper: func(context.Context, config.Config) (queue.Sweeper, error) { return nil, nil },
	Traces:  func(context.Context, config.Config, *slog.Logger) (Traces, error) { return nil, nil },
	Metrics: func(config.Config, func() time.Time, *slog.Logger) Metrics { return nil },
	Model:   func(context.Context, config.Config) (model.Model, error) { return nil, nil },
	Actions: func(config.Config, func() time.Time) (api.DeclaredActions, error) { return nil, nil },
	Tools:   func(config.Config, Accounts, func() time.Time) tool.Set { return nil },
	Agents: func(config.Config, tool.Set, []mcpfile.Server, agents.Agent, agents.Agent) ([]agents.Agent, error) {
		return nil, nil
	},
	Servers: func(config.Config, []mcpfile.Server, func() time.Time, *slog.Logger) (Servers, error) {
		return nil, nil
	},
	Terminals: func(context.Context, config.Config, store.Store, Hosts, func() time.Time) (api.Hosts, error) {
		return nil, nil
	},
	Commands: func(config.Config, store.Store, Hosts) tool.Set { return nil },
	Hosts:    func(context.Context, config.Config) (Hosts, error) { return nil, nil },
	Web:      func(config.Config, web.Fetcher, model.Model) tool.Set { return nil },
	Pages:    func(config.Config) web.Fetcher { return nil },
	GitHub: func(context.Context, config.Config, store.Store, func() time.Time) (*linking.Accounts, error) {
		return nil, nil
	},
	Repositories: func(config.Config, Accounts, Engine, func() time.Time) tool.Set { return nil },
	Token:        func(config.Config, Accounts) (TokenAccounts, error) { return nil, nil },
	Containers:   func(config.Config, Engine, docker.Source) tool.Set { return nil },
	Checkouts:    func(config.Config, Accounts, func() time.Time) docker.Source { return nil },
	Engine:       func(config.Config) (Engine, error) { return nil, nil },
	Receipts:     func(context.Context, config.Config) (api.Receipts, error) { return nil, nil },
	Accounts: func(context.Context, config.Config, store.Store, tool.Set, func() time.Time) (*linking.Accounts, error) {
		return nil, nil
	},
}

// With adds parts to what [New] opens. Parts that are not given are left out; app/all has every part.
func With(parts ...Part) Option {
	return func(o *options) {
		for _, p := range parts {
			if p.Link != nil {
				p.Link(&o.clients)
			}
		}
	}
}

// check returns the error of the first part that cannot work with the configuration, or of the agents that are declared
// over all parts.
func check(parts []Part, cfg config.Config, log *slog.Logger) error {
	warnUnused(cfg, log)
	for _, p := range parts {
		if p.Check == nil {
			continue
		}
		if err := p.Check(cfg, log); err != nil {
			return err
		}
	}
	if cfg.Agents == "" && cfg.MCPServers == "" {
		return nil
	}
	return checkNames(parts, cfg)
}

// checkNames returns what is wrong with the files of agents, which name the tools of all parts, or with the names of
// servers.
func checkNames(parts []Part, cfg config.Config) error {
	o := options{clients: none}
	With(parts...)(&o)
	declared, err := o.clients.Actions(cfg, time.Now)
	if err != nil {
		return err
	}
	tools := withActions(o.clients.Tools(cfg, readOnlyAccounts{}, time.Now), declared)
	tools = with(with(tools, o.clients.Commands(cfg, nil, nil)), o.clients.Web(cfg, nil, nil))
	tools = with(tools, o.clients.Containers(cfg, nil, o.clients.Checkouts(cfg, readOnlyAccounts{}, time.Now)))
	tools = with(tools, o.clients.Repositories(cfg, readOnlyAccounts{}, nil, time.Now))
	servers, err := readServers(cfg, tools, slog.New(slog.DiscardHandler)) // New warns
	if err != nil {
		return err
	}
	_, err = openAgents(cfg, tools, servers, o.clients.Agents)
	return err
}

// needs returns what must be configured here for a function of these parts. Where it is deployed, a function that acts
// needs the OAuth client too; on one machine its absence is reported to the user who asks for an effect.
func needs(parts []Part, deployed bool) []config.Part {
	out := []config.Part{config.Store}
	for _, p := range parts {
		if p.Needs != "" && (deployed || p.Needs != config.Accounts && p.Needs != config.Consent) {
			out = append(out, p.Needs)
		}
	}
	return out
}
