// Package app assembles Countersign: it reads the configuration, opens the backends, and makes the handler of each
// function. Only this package and the packages below it name backends. Every program has the store and the checks of
// callers. Everything else is a [Part] in its own package, so a function links only what it uses.
package app

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/engine/offboard"
	"github.com/countersign-run/countersign/shared/engine/queue"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/telemetry/obs"
)

// App is Countersign with its store, queue and API.
type App struct {
	API       *api.API
	Store     store.Store
	Queue     queue.Queue
	Config    config.Config
	Log       *slog.Logger
	telemetry []Telemetry
	close     func() error
}

// Option changes what New opens.
type Option func(*options)

type options struct {
	now      func() time.Time
	loop     func(*unit.Env)
	function string
	parts    []Part
	replaced []Part
	working  bool
	checked  bool // each part's Check has run with this configuration
	store    func() (store.Store, error)
}

// WithClock makes now the clock of the whole app.
func WithClock(now func() time.Time) Option { return func(o *options) { o.now = now } }

// As makes New open the deployed function with the name, which advances only the runs of its own agents. Without As,
// the app advances all runs.
func As(function string) Option { return func(o *options) { o.function = function } }

// Working declares that the caller advances runs in this process with [App.Work]. If QUEUE is embedded, a resume is
// then a wake-up in memory.
func Working() Option { return func(o *options) { o.working = true } }

// WithEnv changes the engine's environment. Tests and proofs use it to wrap the store, queue and tools.
func WithEnv(change func(*unit.Env)) Option { return func(o *options) { o.loop = change } }

// New opens what the configuration names, with the parts given by [With]. Each client is created once, and sends no
// request before it is used.
func New(ctx context.Context, cfg config.Config, log *slog.Logger, opts ...Option) (*App, error) {
	o := options{now: time.Now, loop: func(*unit.Env) {}}
	for _, opt := range opts {
		opt(&o)
	}
	parts, err := listed(o.parts, o.replaced)
	if err != nil {
		return nil, err
	}
	if o.store == nil {
		o.store = func() (store.Store, error) { return OpenStore(ctx, cfg, o.now) }
	}
	st, err := o.store()
	if err != nil {
		return nil, err
	}
	b := newBuilder(cfg, st, o.now, log)
	if err := b.build(ctx, parts, o); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return &App{API: b.API, Store: st, Queue: b.queue, Config: cfg, Log: log, telemetry: b.telemetry, close: b.close},
		nil
}

// Handler returns a handler of the functions, with logging and telemetry.
func (a *App) Handler(functions ...api.Function) http.Handler {
	h := sending(a.telemetry, a.API.Handler(functions...))
	return obs.Middleware(a.Log, rand.Reader, time.Now, h)
}

// Offboard returns the operations that revoke a user's access and delete their data.
func (a *App) Offboard() offboard.Users {
	return offboard.Users{Records: a.API.Records, Loop: a.API.Loop, Queue: a.Queue, Accounts: a.API.Accounts,
		GitHub: a.API.GitHub}
}

// Close closes everything that New opened, in reverse order.
func (a *App) Close() error { return a.close() }
