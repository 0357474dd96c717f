// Package app puts Countersign together: it reads the configuration, opens the backends that it names, and makes the
// handler of each function. It and the packages under it alone name backends. The store and the checks of who is
// calling are in every program; every other client is a part in a package of its own, so that a function links what it
// uses.
package app

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/chat"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/github"
	"github.com/countersign-run/countersign/shared/google"
	"github.com/countersign-run/countersign/shared/journal"
	"github.com/countersign-run/countersign/shared/linking"
	"github.com/countersign-run/countersign/shared/loop"
	"github.com/countersign-run/countersign/shared/model"
	"github.com/countersign-run/countersign/shared/obs"
	"github.com/countersign-run/countersign/shared/offboard"
	"github.com/countersign-run/countersign/shared/queue"
	"github.com/countersign-run/countersign/shared/records"
	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/tool"
)

// App is Countersign with its store, queue and API.
type App struct {
	API       *api.API
	Store     store.Store
	Queue     queue.Queue
	Config    config.Config
	Log       *slog.Logger
	telemetry []telemetry
	closers   []func() error
}

// Accounts tells which account a user's calls act in, if it may be used with the scopes, and returns the HTTP client
// that acts there as the user and nowhere else.
type Accounts interface {
	Place(ctx context.Context, uid string, scopes []string) (tool.Place, error)
	Client(ctx context.Context, uid string, in tool.Place) (*http.Client, error)
	// Reads returns the paths of the documents by which both know the account.
	Reads(uid string) []string
}

// readOnlyAccounts knows the accounts that are linked and acts in none: the functions that never act need no OAuth
// client.
type readOnlyAccounts struct {
	store    store.Store
	provider linking.Provider
}

func (o readOnlyAccounts) Place(ctx context.Context, uid string, scopes []string) (tool.Place, error) {
	return o.provider.Place(ctx, o.store, uid, scopes)
}

func (o readOnlyAccounts) Reads(uid string) []string { return o.provider.Reads(uid) }

func (o readOnlyAccounts) Client(context.Context, string, tool.Place) (*http.Client, error) {
	return nil, fault.New(fault.Auth, fault.CodeReauth,
		"%s accounts cannot be linked here: no OAuth client is configured.", o.provider.Name)
}

// Option changes what New opens.
type Option func(*options)

type options struct {
	now      func() time.Time
	loop     func(*journal.Env)
	function string
	clients  Clients
	working  bool
	checked  bool // each part's Check was called with this configuration
	store    func() (store.Store, error)
}

// WithClock makes now the clock of everything.
func WithClock(now func() time.Time) Option { return func(o *options) { o.now = now } }

// As makes New open the deployed function with the name, which moves only the runs of the agents that live there.
// Without it all runs are moved.
func As(function string) Option { return func(o *options) { o.function = function } }

// Working says that the caller moves runs in this process, with [App.Work]. A resume is then a wake-up in memory where
// QUEUE is embedded.
func Working() Option { return func(o *options) { o.working = true } }

// WithEnv changes what runs are moved with: tests and proofs wrap its store, queue and tools with it.
func WithEnv(change func(*journal.Env)) Option { return func(o *options) { o.loop = change } }

// New opens what the configuration names, with the parts that it is given ([With]). Clients are made once; none of them
// makes a request before it is used.
func New(ctx context.Context, cfg config.Config, log *slog.Logger, opts ...Option) (*App, error) {
	o := options{now: time.Now, loop: func(*journal.Env) {}, clients: none}
	for _, opt := range opts {
		opt(&o)
	}
	a := &App{Config: cfg, Log: log}
	if err := a.open(ctx, o); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

func (a *App) open(ctx context.Context, o options) (err error) {
	cfg := a.Config
	if o.store == nil {
		o.store = func() (store.Store, error) { return OpenStore(ctx, cfg, o.now) }
	}
	if a.Store, err = o.store(); err != nil {
		return err
	}
	a.closers = append(a.closers, a.Store.Close)
	if a.Queue, err = openQueue(ctx, cfg, a.Store, o, a.Log); err != nil {
		return err
	}
	a.closers = append(a.closers, a.Queue.Close)
	notices, err := o.clients.Notices(ctx, cfg, a.Store, o.now, a.Log)
	if err != nil {
		return err
	}
	if notices != nil {
		a.closers = append(a.closers, notices.Close)
	}
	traces, err := o.clients.Traces(ctx, cfg, a.Log)
	if err != nil {
		return err
	}
	if traces != nil {
		a.closers, a.telemetry = append(a.closers, traces.Close), append(a.telemetry, traces)
	}
	measured := o.clients.Metrics(cfg, o.now, a.Log)
	if measured != nil {
		a.closers, a.telemetry = append(a.closers, measured.Close), append(a.telemetry, measured)
	}
	sweeper, err := o.clients.Sweeper(ctx, cfg)
	if err != nil {
		return err
	}
	if sweeper != nil {
		a.closers = append(a.closers, sweeper.Close)
	}
	mdl, err := o.clients.Model(ctx, cfg)
	if err != nil {
		return err
	}
	linked, err := o.clients.Accounts(ctx, cfg, a.Store, o.clients.Tools(cfg, readOnlyAccounts{}, o.now), o.now)
	if err != nil {
		return err
	}
	onGitHub, err := o.clients.GitHub(ctx, cfg, a.Store, o.now)
	if err != nil {
		return err
	}
	repositories := chooseAccounts(onGitHub, a.Store, github.Provider)
	token, err := o.clients.Token(cfg, repositories)
	if err != nil {
		return err
	}
	if token != nil {
		repositories = token
	}
	rec := &records.Records{Store: a.Store, Now: o.now, Retention: cfg.Retention, AuditDays: cfg.AuditDays}
	users, agents, push, err := openAuth(cfg, o.now)
	if err != nil {
		return err
	}
	acting := chooseAccounts(linked, a.Store, google.Provider)
	actions, err := o.clients.Actions(cfg, o.now)
	if err != nil {
		return err
	}
	if !o.checked {
		warnUnused(cfg, a.Log)
		WarnUnbound(a.Log, actions)
	}
	hosts, err := o.clients.Hosts(ctx, cfg)
	if err != nil {
		return err
	}
	if hosts != nil {
		a.closers = append(a.closers, hosts.Close)
	}
	kept, err := o.clients.Terminals(ctx, cfg, a.Store, hosts, o.now)
	if err != nil {
		return err
	}
	tools := withActions(o.clients.Tools(cfg, acting, o.now), actions)
	tools = with(tools, o.clients.Commands(cfg, a.Store, hosts))
	engine, err := o.clients.Engine(cfg)
	if err != nil {
		return err
	}
	if engine != nil {
		a.closers = append(a.closers, engine.Close)
	}
	tools = with(tools, o.clients.Containers(cfg, engine, o.clients.Checkouts(cfg, repositories, o.now)))
	tools = with(tools, o.clients.Web(cfg, o.clients.Pages(cfg),
		journal.MeasuredModel(mdl, measuring(measured), o.now)))
	tools = with(tools, o.clients.Repositories(cfg, repositories, engine, o.now))
	file, err := readServers(cfg, tools, a.Log)
	if err != nil {
		return err
	}
	registry, err := openAgents(cfg, tools, file, o.clients.Agents)
	if err != nil {
		return err
	}
	servers, err := o.clients.Servers(cfg, file, o.now, a.Log)
	if err != nil {
		return err
	}
	if servers != nil {
		a.closers = append(a.closers, servers.Close)
	}
	receipts, err := o.clients.Receipts(ctx, cfg)
	if err != nil {
		return err
	}
	env := journal.Env{Store: a.Store, Queue: a.Queue, Model: mdl, Tools: tools, Rules: cfg.Rules, Agents: registry,
		Function: o.function, Sweeper: sweeper, Hold: cfg.Hold, AuditDays: cfg.AuditDays,
		UserLimits: run.Limits{RunsPerMinute: cfg.MaxRunsPerMinute, CallsPerDay: cfg.MaxModelCallsPerDay,
			TokensPerDay: cfg.MaxTokensPerDay},
		Console: cfg.ConsoleURL, Reminding: reminding(cfg),
		Metrics: measuring(measured), Log: a.Log, Now: o.now}
	if env.Reminders, err = o.clients.Reminders(cfg, a.Store, o.now); err != nil {
		return err
	}
	if notices != nil {
		env.Notices = notices
	}
	if traces != nil {
		env.Tracer, env.TraceContent = traces.Tracer(), cfg.TraceContent
	}
	if servers != nil {
		env.Served = servers
	}
	o.loop(&env)
	if err := quarantine(ctx, a.Store, &env); err != nil {
		return err
	}
	l := loop.New(env)
	var talk *chat.Chat
	if o.clients.Chat && mdl != nil {
		if talk, err = openChat(cfg, l, rec); err != nil {
			return err
		}
	}
	var expiry *records.Expiry
	if cfg.Store == "embedded" && cfg.AuditDays > 0 { // Firestore deletes what has expired by itself
		expiry = &records.Expiry{Records: rec}
	}
	a.API = &api.API{Loop: l, Expiry: expiry, Chat: talk, Actions: actions, Records: rec, Accounts: linked,
		GitHub: onGitHub, Token: token, Hosts: kept, Receipts: receipts, Users: users, Agents: agents, Push: push,
		Plans:   openPlanner(cfg, l, onGitHub != nil || token != nil),
		BuiltIn: slices.Concat(BuiltIn, ownNames), Origins: cfg.AllowedOrigins, PublicURL: cfg.PublicURL,
		MCPURL:       cfg.MCPURL,
		Subscription: cfg.PushSubscription, Log: a.Log,
		Budget: cfg.FunctionTimeout, Concurrency: cfg.Concurrency,
		Health: health(cfg, mdl, executableTools(l.Tools, actions))}
	if o.clients.AgentDoor != nil {
		a.API.AgentDoor = o.clients.AgentDoor(cfg, l, a.Log)
	}
	if o.clients.Webhooks != nil {
		if a.API.Webhooks, err = o.clients.Webhooks(cfg, o.now); err != nil {
			return err
		}
	}
	if a.API.Devices, err = o.clients.Devices(cfg, a.Store, o.now, a.Log); err != nil {
		return err
	}
	if o.clients.Sockets != nil && hosts != nil {
		a.API.Sockets = o.clients.Sockets(a.Store, l, hosts, a.Log)
	}
	return nil
}

// chooseAccounts returns the accounts that the tools act in: those of an OAuth client, or readOnlyAccounts without one.
func chooseAccounts(linked *linking.Accounts, st store.Store, at linking.Provider) Accounts {
	if linked == nil {
		return readOnlyAccounts{st, at}
	}
	return linked
}

// withActions adds the declared actions to the tools.
func withActions(tools tool.Set, actions api.DeclaredActions) tool.Set {
	if actions == nil {
		return tools
	}
	return with(actions.Tools(), tools)
}

// with returns all tools of both sets.
func with(tools, more tool.Set) tool.Set {
	all := tool.Set{}
	maps.Copy(all, tools)
	maps.Copy(all, more)
	return all
}

// warnUnused logs the settings that people expect to count and that do not. It tells nothing of their values.
func warnUnused(cfg config.Config, log *slog.Logger) {
	if cfg.DatabaseURL {
		log.Warn("DATABASE_URL is set and not used: STORE says where everything is kept", "STORE", cfg.Store)
	}
}

// WarnUnbound logs the declared actions that nothing carries out. actions may be nil.
func WarnUnbound(log *slog.Logger, actions api.DeclaredActions) {
	if actions == nil {
		return
	}
	for _, name := range actions.Unbound() {
		log.Warn("an action is declared and nothing carries it out: it has no Go handler, and no file with a binding",
			"action", name)
	}
}

// Handler serves the named functions with everything around them.
func (a *App) Handler(functions ...api.Function) http.Handler {
	h := sending(a.telemetry, a.API.Handler(functions...))
	return obs.Middleware(a.Log, rand.Reader, time.Now, h)
}

// Offboard returns what takes a user's access away and deletes their data.
func (a *App) Offboard() offboard.Users {
	return offboard.Users{Records: a.API.Records, Loop: a.API.Loop, Queue: a.Queue, Accounts: a.API.Accounts,
		GitHub: a.API.GitHub}
}

// Close closes what was opened, in the reverse order.
func (a *App) Close() error {
	var errs []error
	for i := len(a.closers) - 1; i >= 0; i-- {
		errs = append(errs, a.closers[i]())
	}
	return errors.Join(errs...)
}

// Health is what GET /health answers.
type Health struct {
	OK      bool     `json:"ok"`
	Release string   `json:"release"`
	Store   string   `json:"store"`
	Queue   string   `json:"queue"`
	Model   string   `json:"model,omitempty"`
	Tools   []string `json:"tools,omitempty"`
}

// executableTools returns the tools without the actions that nothing carries out.
func executableTools(tools tool.Set, actions api.DeclaredActions) tool.Set {
	if actions == nil {
		return tools
	}
	set := maps.Clone(tools)
	for _, name := range actions.Unbound() {
		delete(set, actions.Tool(name).Name)
	}
	return set
}

func health(cfg config.Config, mdl model.Model, t tool.Set) Health {
	h := Health{true, cfg.Release, cfg.Store, cfg.Queue, "", t.Names()}
	if h.Release == "" {
		h.Release = obs.BuildRelease()
	}
	if mdl != nil {
		h.Model = mdl.Name()
	}
	return h
}

// WarnOfNearMisses warns of each variable of the environment that looks like a misspelt setting.
func WarnOfNearMisses(cfg config.Config, environ []string, log *slog.Logger) {
	for _, m := range cfg.NearMisses(environ) {
		log.Warn(m.Variable+" is no setting, and has no effect; did you mean "+m.Meant+"?", "variable", m.Variable)
	}
}

// Serve returns the handler of one function, made of the parts. Where the process was started to be this function, a
// configuration that cannot work stops it at once, with one line for each variable, and so does a broken file of
// actions or agents; actions that nothing carries out are logged, and the store is connected to while the server begins
// to listen. The other clients are opened by the first request.
func Serve(f api.Function, parts ...Part) func(http.ResponseWriter, *http.Request) {
	load := sync.OnceValues(func() (config.Config, error) {
		cfg, err := config.Load(os.Getenv, needs(parts, os.Getenv("K_SERVICE") != "")...)
		if err != nil {
			return cfg, err
		}
		log := obs.New(os.Stdout, cfg.Log())
		WarnOfNearMisses(cfg, os.Environ(), log)
		return cfg, check(parts, cfg, log)
	})
	documents := sync.OnceValues(func() (store.Store, error) {
		cfg, err := load()
		if err != nil {
			return nil, err
		}
		return OpenStore(context.Background(), cfg, time.Now)
	})
	if os.Getenv("FUNCTION_TARGET") == f.Name {
		cfg, err := load()
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if cfg.Store != "embedded" {
			go func() { _, _ = documents() }() // the first request reports what is wrong
		}
	}
	open := sync.OnceValues(func() (http.Handler, error) {
		cfg, err := load()
		if err != nil {
			return nil, err
		}
		a, err := New(context.Background(), cfg, obs.New(os.Stdout, cfg.Log()), With(parts...), As(f.Name),
			func(o *options) { o.checked, o.store = true, documents })
		if err != nil {
			return nil, err
		}
		return a.Handler(f), nil
	})
	return func(w http.ResponseWriter, r *http.Request) {
		h, err := open()
		if err != nil {
			obs.New(os.Stdout, obs.Options{Service: f.Name, Release: os.Getenv("RELEASE")}).Error(
				"the function cannot start", "error", err)
			obs.Strict(w.Header(), r)
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprintln(w, `{"ok":false,"error":{"class":"ToolExecutionError","code":"internal","message":"The function cannot start. Its log says why.","requestId":""}}`)
			return
		}
		h.ServeHTTP(w, r)
	}
}
