package otlp

import (
	"math"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/countersign-run/countersign/shared/telemetry/metrics"
)

// Field numbers of the OTLP messages
// (https://github.com/open-telemetry/opentelemetry-proto/blob/v1.11.0/opentelemetry/proto/metrics/v1/metrics.proto).
const (
	requestResourceMetrics = 1

	resourceMetricsResource = 1
	resourceMetricsScopes   = 2
	resourceAttributes      = 1
	scopeMetricsScope       = 1
	scopeMetricsMetrics     = 2
	scopeName               = 1
	scopeVersion            = 2

	metricName        = 1
	metricDescription = 2
	metricUnit        = 3
	metricGauge       = 5
	metricSum         = 7
	metricHistogram   = 9

	dataPoints      = 1 // of gauge, sum and histogram
	dataTemporality = 2 // of sum and histogram
	sumIsMonotonic  = 3

	pointFrom       = 2 // of numbers and histograms
	pointTo         = 3
	numberDouble    = 4
	numberInt       = 6
	numberAttrs     = 7
	histogramCount  = 4
	histogramSum    = 5
	histogramCounts = 6
	histogramBounds = 7
	histogramAttrs  = 9

	keyValueKey    = 1
	keyValueValue  = 2
	anyValueString = 1

	delta      = 1 // AggregationTemporality
	cumulative = 2
)

// within appends the output of write as a length-delimited field. The length is known only afterwards, so the output is
// moved to make room for it.
func within(b []byte, field protowire.Number, write func([]byte) []byte) []byte {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	at := len(b)
	b = write(b)
	n := len(b) - at
	b = protowire.AppendVarint(b, uint64(n)) // makes room
	copy(b[len(b)-n:], b[at:at+n])
	protowire.AppendVarint(b[:at], uint64(n))
	return b
}

func text(b []byte, field protowire.Number, s string) []byte {
	b = protowire.AppendTag(b, field, protowire.BytesType)
	return protowire.AppendString(b, s)
}

func number(b []byte, field protowire.Number, n uint64) []byte {
	b = protowire.AppendTag(b, field, protowire.VarintType)
	return protowire.AppendVarint(b, n)
}

func fixed(b []byte, field protowire.Number, n uint64) []byte {
	b = protowire.AppendTag(b, field, protowire.Fixed64Type)
	return protowire.AppendFixed64(b, n)
}

func double(b []byte, field protowire.Number, f float64) []byte {
	return fixed(b, field, math.Float64bits(f))
}

func moment(b []byte, field protowire.Number, t time.Time) []byte {
	return fixed(b, field, uint64(t.UnixNano()))
}

func attribute(b []byte, field protowire.Number, key, value string) []byte {
	return within(b, field, func(b []byte) []byte {
		b = text(b, keyValueKey, key)
		return within(b, keyValueValue, func(b []byte) []byte { return text(b, anyValueString, value) })
	})
}

// encodeResource encodes the attributes of the measuring process.
func encodeResource(attrs []metrics.Attr) (b []byte) {
	for _, a := range attrs {
		b = attribute(b, resourceAttributes, a.Key, a.Value)
	}
	return b
}

// encode returns an ExportMetricsServiceRequest. Two encoded requests can be concatenated into one, as always with
// protocol buffers.
func encode(resource []byte, release string, batch metrics.Batch, temporality uint64) []byte {
	return within(nil, requestResourceMetrics, func(b []byte) []byte {
		b = within(b, resourceMetricsResource, func(b []byte) []byte { return append(b, resource...) })
		return within(b, resourceMetricsScopes, func(b []byte) []byte {
			b = within(b, scopeMetricsScope, func(b []byte) []byte {
				return text(text(b, scopeName, name), scopeVersion, release)
			})
			for rest := batch.Points; len(rest) > 0; {
				n := 1
				for n < len(rest) && rest[n].Of == rest[0].Of {
					n++
				}
				b = within(b, scopeMetricsMetrics, func(b []byte) []byte {
					return metric(b, batch, rest[:n], temporality)
				})
				rest = rest[n:]
			}
			return b
		})
	})
}

// fieldOf maps the kind of an instrument to the field of a metric that holds its points.
var fieldOf = [...]protowire.Number{metrics.Counter: metricSum, metrics.Histogram: metricHistogram,
	metrics.Gauge: metricGauge}

// metric encodes the points of one instrument.
func metric(b []byte, batch metrics.Batch, points []*metrics.Point, temporality uint64) []byte {
	of := points[0].Of
	b = text(text(text(b, metricName, of.Name), metricDescription, of.Description), metricUnit, of.Unit)
	return within(b, fieldOf[of.Kind], func(b []byte) []byte {
		for _, p := range points {
			b = within(b, dataPoints, func(b []byte) []byte { return point(b, batch, p) })
		}
		if of.Kind == metrics.Gauge {
			return b
		}
		b = number(b, dataTemporality, temporality)
		if of.Kind == metrics.Counter {
			b = number(b, sumIsMonotonic, 1)
		}
		return b
	})
}

func point(b []byte, batch metrics.Batch, p *metrics.Point) []byte {
	attrs := protowire.Number(numberAttrs)
	switch p.Of.Kind {
	case metrics.Gauge:
		b = double(moment(b, pointTo, p.At), numberDouble, p.Value)
	case metrics.Counter:
		b = moment(moment(b, pointFrom, batch.From), pointTo, batch.To)
		b = fixed(b, numberInt, uint64(int64(p.Value)))
	case metrics.Histogram:
		attrs = histogramAttrs
		b = moment(moment(b, pointFrom, batch.From), pointTo, batch.To)
		b = double(fixed(b, histogramCount, p.Count), histogramSum, p.Value)
		b = within(b, histogramCounts, func(b []byte) []byte {
			for _, n := range p.Buckets {
				b = protowire.AppendFixed64(b, n)
			}
			return b
		})
		b = within(b, histogramBounds, func(b []byte) []byte {
			for _, f := range p.Of.Bounds {
				b = protowire.AppendFixed64(b, math.Float64bits(f))
			}
			return b
		})
	}
	for _, a := range p.Attrs {
		if a.Value != "" {
			b = attribute(b, attrs, a.Key, a.Value)
		}
	}
	return b
}

// refused parses a collector's answer. It returns the number of points that the collector did not accept, and its
// reason.
func refused(answer []byte) (points uint64, why string) {
	_, partial := fieldIn(answer, 1) // partial_success
	points, _ = fieldIn(partial, 1)
	_, text := fieldIn(partial, 2)
	return points, string(text)
}

// fieldIn returns the value of a field in a message, as far as the message can be parsed.
func fieldIn(b []byte, wanted protowire.Number) (number uint64, content []byte) {
	for len(b) > 0 {
		num, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			break
		}
		b = b[n:]
		size := protowire.ConsumeFieldValue(num, kind, b)
		if size < 0 {
			break
		}
		if num == wanted {
			number, _ = protowire.ConsumeVarint(b)
			content, _ = protowire.ConsumeBytes(b)
		}
		b = b[size:]
	}
	return number, content
}
