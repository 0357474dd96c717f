package app

import (
	"log/slog"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/config"
)

// warnUnused logs settings that have no effect, without their values.
func warnUnused(cfg config.Config, log *slog.Logger) {
	if cfg.DatabaseURL {
		log.Warn("DATABASE_URL is set but not used: STORE determines where data is stored", "STORE", cfg.Store)
	}
}

// WarnUnbound logs the declared actions that have neither a handler nor a binding. actions can be nil.
func WarnUnbound(log *slog.Logger, actions api.DeclaredActions) {
	if actions == nil {
		return
	}
	for _, name := range actions.Unbound() {
		log.Warn("a declared action has neither a Go handler nor a binding",
			"action", name)
	}
}

// WarnOfNearMisses logs each environment variable that looks like a misspelt setting.
func WarnOfNearMisses(cfg config.Config, environ []string, log *slog.Logger) {
	for _, m := range cfg.NearMisses(environ) {
		log.Warn(m.Variable+" is not a setting and has no effect; did you mean "+m.Meant+"?", "variable", m.Variable)
	}
}
