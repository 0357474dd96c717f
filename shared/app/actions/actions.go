// Package actions is the part for the operator's declared actions: it offers them to the model, validates and shows
// their calls, and executes them.
package actions

import (
	"cmp"
	"fmt"
	"log/slog"
	"time"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/tools/action"
)

// Part has the actions in the folder ACTIONS. Endpoints and the Go code of handlers.go execute them.
var Part = With(own())

// With returns Part with other Go handlers.
func With(handlers action.Handlers) app.Part {
	open := func(cfg config.Config, now func() time.Time) (api.DeclaredActions, error) {
		if cfg.Actions == "" {
			return nil, nil
		}
		r, err := action.Open(cfg.Actions, action.Options{Handlers: handlers, Keys: cfg.ActionKeys(),
			Issuer: cmp.Or(cfg.PublicURL, "countersign"), Now: now,
			Deployed: cfg.OnCloudRun})
		if err != nil {
			return nil, fmt.Errorf("ACTIONS: %w", err)
		}
		return r, nil
	}
	return app.Part{
		Name: "actions",
		Tools: func(b *app.Builder) error {
			declared, err := open(b.Config, b.Now)
			if declared == nil || err != nil {
				return err
			}
			b.API.Actions = declared
			return b.Add(declared.Tools())
		},
		Check: func(cfg config.Config, log *slog.Logger) error {
			declared, err := open(cfg, time.Now)
			if err != nil {
				return err
			}
			app.WarnUnbound(log, declared)
			if r, ok := declared.(*action.Registry); ok {
				for _, note := range r.Notes() {
					log.Info("ACTIONS", "note", note)
				}
			}
			return nil
		},
	}
}
