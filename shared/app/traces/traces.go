// Package traces has the part of the functions that move runs, and have OpenTelemetry's traces of that sent.
package traces

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/obs"
	"github.com/countersign-run/countersign/shared/traces"
)

// Part sends the traces of runs, where a collector is configured.
var Part = app.Part{Link: func(c *app.Clients) { c.Traces = open }}

func open(ctx context.Context, cfg config.Config, log *slog.Logger) (app.Traces, error) {
	if cfg.TracesEndpoint == "" {
		return nil, nil
	}
	return traces.Open(ctx, traces.Options{Endpoint: cfg.TracesEndpoint, Headers: cfg.TracesHeaders(),
		Service: cfg.TraceService, Release: cmp.Or(cfg.Release, obs.BuildRelease()), Sampler: cfg.TraceSampler,
		Ratio: cfg.TraceRatio, Log: log})
}
