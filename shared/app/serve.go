package app

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/telemetry/obs"
)

// served has the functions passed to Serve. A deployed program has one.
var served []Function

// Function is a function of this program, with its parts.
type Function struct {
	Name  string
	parts []Part
}

// Served returns the functions of this program.
func Served() []Function { return served }

// Parts returns the names of the function's parts in order. It returns an error if a part is missing or doubled.
func (f Function) Parts() (names []string, err error) {
	parts, err := listed(f.parts, nil)
	for _, p := range parts {
		names = append(names, p.Name)
	}
	return names, err
}

// Serve returns the handler of one function made of the parts. If the process was started as this function, an invalid
// configuration or a broken file of actions or agents stops it at once. The store's connection is opened while the
// server starts to listen. The first request opens the other clients.
func Serve(f api.Function, parts ...Part) func(http.ResponseWriter, *http.Request) {
	served = append(served, Function{f.Name, parts})
	load := sync.OnceValues(func() (config.Config, error) { return configured(parts) })
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
			go func() { _, _ = documents() }() // the first request reports an error
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
			cannotStart(w, r, f.Name, err)
			return
		}
		h.ServeHTTP(w, r)
	}
}

// configured returns the configuration of a function with these parts, after they have checked it. The error has one
// line for each wrong variable.
func configured(parts []Part) (config.Config, error) {
	all, err := listed(parts, nil)
	if err != nil {
		return config.Config{}, err
	}
	cfg, err := config.Load(os.Getenv, needs(all, os.Getenv("K_SERVICE") != "")...)
	if err != nil {
		return cfg, err
	}
	log := obs.New(os.Stdout, cfg.Log())
	WarnOfNearMisses(cfg, os.Environ(), log)
	return cfg, check(all, cfg, log)
}

// cannotStart logs the error, and answers a request to a function that cannot start.
func cannotStart(w http.ResponseWriter, r *http.Request, function string, err error) {
	obs.New(os.Stdout, obs.Options{Service: function, Release: os.Getenv("RELEASE")}).Error(
		"the function cannot start", "error", err)
	obs.Strict(w.Header(), r)
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(http.StatusServiceUnavailable)
	fmt.Fprintln(w, `{"ok":false,"error":{"class":"ToolExecutionError","code":"internal","message":"The function cannot start. Its log says why.","requestId":""}}`)
}

// check returns the first error of a part's Check. If the operator has files of agents or servers, it also checks the
// names in them against the tools of all parts.
func check(parts []Part, cfg config.Config, log *slog.Logger) error {
	warnUnused(cfg, log)
	if err := each(parts, func(p Part) error { return p.Check(cfg, log) }); err != nil {
		return err
	}
	if cfg.Agents == "" && cfg.MCPServers == "" {
		return nil
	}
	_, err := newBuilder(cfg, nil, time.Now, slog.New(slog.DiscardHandler)).offer(parts) // New logs the warnings
	return err
}

// needs returns the required configuration of a function with these parts. Deployed, a function that acts needs the
// OAuth client too. On one machine, users learn that the client is missing when they request an effect.
func needs(parts []Part, deployed bool) []config.Part {
	out := []config.Part{config.Store}
	for _, p := range parts {
		if p.Needs != "" && (deployed || p.Needs != config.Accounts && p.Needs != config.Consent) {
			out = append(out, p.Needs)
		}
	}
	return out
}
