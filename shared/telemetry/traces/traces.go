// Package traces sends OpenTelemetry spans of runs to the operator's collector, by OTLP over HTTP. Package unit
// decides what a span contains.
package traces

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/countersign-run/countersign/shared/telemetry/obs"
)

const (
	name     = "github.com/countersign-run/countersign" // library name in the spans
	sendTime = 2 * time.Second                          // maximum time that a request waits for the collector
)

// Options are the options of [Open].
type Options struct {
	Endpoint string            // full URL for traces
	Headers  map[string]string // of each request to the collector
	Service  string            // service.name
	Release  string            // service.version
	Sampler  string            // as in OTEL_TRACES_SAMPLER
	Ratio    float64           // share of runs that are traced, if the sampler has a ratio
	Log      *slog.Logger
}

// Traces sends the spans of a process to one collector. It is safe for concurrent use.
type Traces struct{ provider *sdktrace.TracerProvider }

// Open returns a Traces. It sends nothing before a run makes progress. The environment's OTEL_BSP_… and
// OTEL_RESOURCE_ATTRIBUTES set the queue of spans and further attributes of the service
// (https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/).
func Open(ctx context.Context, o Options) (*Traces, error) {
	exporter, err := otlptracehttp.New(ctx,
		otlptracehttp.WithEndpointURL(o.Endpoint),
		otlptracehttp.WithHeaders(o.Headers), otlptracehttp.WithTimeout(sendTime),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{})) // requests do not wait for an unavailable collector
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithFromEnv(),
		resource.WithAttributes(semconv.ServiceName(o.Service), semconv.ServiceVersion(o.Release)))
	if err != nil {
		return nil, fmt.Errorf("traces: OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) {
		o.Log.Warn("traces could not be sent", "error", err)
	}))
	return &Traces{sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithSpanProcessor(logged{}),
		sdktrace.WithResource(about), sdktrace.WithSampler(sampler(o)))}, nil
}

func sampler(o Options) sdktrace.Sampler {
	switch strings.TrimPrefix(o.Sampler, "parentbased_") {
	case "always_off":
		return sdktrace.NeverSample()
	case "traceidratio":
		return sdktrace.ParentBased(sdktrace.TraceIDRatioBased(o.Ratio))
	}
	return sdktrace.ParentBased(sdktrace.AlwaysSample())
}

// Tracer returns the tracer that creates spans.
func (t *Traces) Tracer() trace.Tracer { return t.provider.Tracer(name) }

// Send sends all unsent spans, and stops when ctx ends. A failure is logged, and unsent spans are lost.
func (t *Traces) Send(ctx context.Context) {
	if err := t.provider.ForceFlush(ctx); err != nil {
		otel.Handle(err)
	}
}

// logged is a span processor that adds the trace of a root span to the log lines of its request.
type logged struct{}

func (logged) OnStart(ctx context.Context, s sdktrace.ReadWriteSpan) {
	if c := s.SpanContext(); !s.Parent().IsValid() {
		obs.SetTrace(ctx, c.TraceID().String(), c.SpanID().String(), c.IsSampled())
	}
}

func (logged) OnEnd(sdktrace.ReadOnlySpan) {}

func (logged) Shutdown(context.Context) error { return nil }

func (logged) ForceFlush(context.Context) error { return nil }

// Close sends the remaining spans.
func (t *Traces) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), sendTime)
	defer cancel()
	return t.provider.Shutdown(ctx)
}
