package countersign

import "go.opentelemetry.io/otel/trace"

// tracerName is the name of the library in the spans that it makes.
const tracerName = "github.com/countersign-run/countersign"

// tracer returns the tracer of Options.TracerProvider, or nil where nothing is traced.
func (c *core) tracer() trace.Tracer {
	if c.options.TracerProvider == nil {
		return nil
	}
	return c.options.TracerProvider.Tracer(tracerName)
}
