// Package metrics is the part that sends metrics of runs, for functions that advance runs or decide about them.
package metrics

import (
	"cmp"
	"context"
	"crypto/rand"
	"slices"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/telemetry/metrics"
	"github.com/countersign-run/countersign/shared/telemetry/metrics/otlp"
	"github.com/countersign-run/countersign/shared/telemetry/obs"
)

// Part sends metrics if a collector is configured.
var Part = app.Part{Name: "metrics", Open: open}

func open(_ context.Context, b *app.Builder) error {
	cfg := b.Config
	if cfg.MetricsEndpoint == "" {
		return nil
	}
	m := otlp.Open(otlp.Options{Endpoint: cfg.MetricsEndpoint, Headers: cfg.MetricsHeaders(), Resource: resource(cfg),
		Release: release(cfg), Cumulative: cfg.MetricsCumulative, Every: cfg.MetricsInterval, Log: b.Log}, b.Now)
	b.Env.Metrics = m.Metrics()
	b.Sends(m)
	return nil
}

// resource identifies the sender. Each process is its own instance.
func resource(cfg config.Config) []metrics.Attr {
	all := []metrics.Attr{{Key: "service.name", Value: cfg.TraceService},
		{Key: "service.version", Value: release(cfg)}, {Key: "service.instance.id", Value: rand.Text()}}
	for key, value := range cfg.ResourceAttributes() {
		if !slices.ContainsFunc(all, func(a metrics.Attr) bool { return a.Key == key }) {
			all = append(all, metrics.Attr{Key: key, Value: value})
		}
	}
	return all
}

func release(cfg config.Config) string { return cmp.Or(cfg.Release, obs.BuildRelease()) }
