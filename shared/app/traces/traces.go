// Package traces is the part that sends OpenTelemetry traces of runs, for functions that advance runs.
package traces

import (
	"cmp"
	"context"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/telemetry/obs"
	"github.com/countersign-run/countersign/shared/telemetry/traces"
)

// Part sends the traces of runs if a collector is configured.
var Part = app.Part{Name: "traces", Open: open}

func open(ctx context.Context, b *app.Builder) error {
	cfg := b.Config
	if cfg.TracesEndpoint == "" {
		return nil
	}
	t, err := traces.Open(ctx, traces.Options{Endpoint: cfg.TracesEndpoint, Headers: cfg.TracesHeaders(),
		Service: cfg.TraceService, Release: cmp.Or(cfg.Release, obs.BuildRelease()), Sampler: cfg.TraceSampler,
		Ratio: cfg.TraceRatio, Log: b.Log})
	if err != nil {
		return err
	}
	b.Env.Tracer, b.Env.TraceContent = t.Tracer(), cfg.TraceContent
	b.Sends(t)
	return nil
}
