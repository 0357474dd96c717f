// Package traces sends OpenTelemetry's spans of runs to the operator's collector, by OTLP over HTTP. Package journal
// defines the contents of a span.
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
	name     = "github.com/countersign-run/countersign" // of the library in its spans
	sendTime = 2 * time.Second                          // that a request waits for the collector at most
)

// Options of Open.
type Options struct {
	Endpoint string            // where traces are sent, with its path
	Headers  map[string]string // of each request to it
	Service  string            // service.name
	Release  string            // service.version
	Sampler  string            // as OTEL_TRACES_SAMPLER has it
	Ratio    float64           // of runs that are traced, where the sampler has one
	Log      *slog.Logger
}

// Traces are those that are sent to one collector. They are safe for concurrent use.
type Traces struct{ provider *sdktrace.TracerProvider }

// Open returns traces. Nothing is sent before a run is moved. The queue of spans and further attributes of the service
// are as OTEL_BSP_… and OTEL_RESOURCE_ATTRIBUTES of the environment have them
// (https://opentelemetry.io/docs/specs/otel/configuration/sdk-environment-variables/).
func Open(ctx context.Context, o Options) (*Traces, error) {
	exporter, err := otlptracehttp.New(ctx,
		otlptracehttp.WithEndpointURL(o.Endpoint),
		otlptracehttp.WithHeaders(o.Headers), otlptracehttp.WithTimeout(sendTime),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{})) // no request waits for a collector that is down
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

// Tracer makes spans.
func (t *Traces) Tracer() trace.Tracer { return t.provider.Tracer(name) }

// Send sends the spans not sent yet, until ctx ends. After a failure, which is logged, unsent spans are lost.
func (t *Traces) Send(ctx context.Context) {
	if err := t.provider.ForceFlush(ctx); err != nil {
		otel.Handle(err)
	}
}

// logged has the lines of a request that begins a span tell of its trace.
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
