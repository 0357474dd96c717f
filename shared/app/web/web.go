// Package web makes the function that serves the console and the chat widget. It opens no store, authenticates no
// caller, and links nothing of the API.
package web

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/telemetry/obs"
	"github.com/countersign-run/countersign/shared/web"
	"github.com/countersign-run/countersign/shared/web/widget"
)

// Options returns the site's options from the configuration.
func Options(cfg config.Config) web.Options {
	o := web.Options{Release: cfg.Release, APIBase: cfg.WebAPIURL, Issuer: cfg.AuthIssuer, ClientID: cfg.WebClientID,
		Functions: cfg.WebFunctions, Widget: widget.Files()}
	if o.Release == "" {
		o.Release = obs.BuildRelease()
	}
	return o
}

// Function returns the handler of the function. An invalid configuration stops the process at once, as in the other
// functions.
func Function(name string) func(http.ResponseWriter, *http.Request) {
	load := sync.OnceValues(func() (http.Handler, error) {
		cfg, err := config.Load(os.Getenv)
		if err != nil {
			return nil, err
		}
		site, err := web.New(Options(cfg))
		if err != nil {
			return nil, err
		}
		return obs.Middleware(obs.New(os.Stdout, cfg.Log()), rand.Reader, time.Now, site), nil
	})
	if os.Getenv("FUNCTION_TARGET") == name {
		if _, err := load(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	return func(w http.ResponseWriter, r *http.Request) {
		h, err := load()
		if err != nil {
			obs.New(os.Stdout, obs.Options{Service: name}).Error("the function cannot start", "error", err)
			obs.Strict(w.Header(), r)
			http.Error(w, "The function cannot start. Its log says why.", http.StatusServiceUnavailable)
			return
		}
		h.ServeHTTP(w, r)
	}
}
