package countersign

import "go.opentelemetry.io/otel/trace"

// tracerName is the name of this library in its spans.
const tracerName = "github.com/countersign-run/countersign"

// tracer returns the tracer of Options.TracerProvider, or nil if there is none.
func (c *core) tracer() trace.Tracer {
	if c.options.TracerProvider == nil {
		return nil
	}
	return c.options.TracerProvider.Tracer(tracerName)
}
