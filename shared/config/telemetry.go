package config

import (
	"cmp"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/net/http/httpguts"
)

// telemetry reads OpenTelemetry's standard variables for traces and metrics.
func (l *loader) telemetry(c *Config) {
	const address = "the address of a collector of OTLP over HTTP, such as https://otel.example.com (http only on a " +
		"loopback address), without a query"
	endpoint := strings.TrimRight(l.text("OTEL_EXPORTER_OTLP_ENDPOINT", "", address, isBase(l.deployed)), "/")
	c.otlpHeaders = l.secret("OTEL_EXPORTER_OTLP_HEADERS", headerPairs, areHeaders)
	c.TracesProtocol = l.oneOf("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf", "http/protobuf")
	c.TracesOff = l.oneOf("OTEL_SDK_DISABLED", "false", "false", "true") == "true"
	c.TraceService = l.text("OTEL_SERVICE_NAME", cmp.Or(c.Service, "countersign"),
		"a name of up to 100 letters, digits, dots, hyphens and underscores", isServiceName)
	c.resource = l.text("OTEL_RESOURCE_ATTRIBUTES", "", "up to 16 "+pairs+", values up to 255 bytes", areAttributes)
	c.TraceSampler = l.oneOf("OTEL_TRACES_SAMPLER", "always_on", "always_on", "always_off", "traceidratio",
		"parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio")
	ratio := l.text("OTEL_TRACES_SAMPLER_ARG", "1", "a number from 0 to 1", isRatio)
	c.TraceRatio, _ = strconv.ParseFloat(ratio, 64) // already validated
	c.TraceContent = l.oneOf("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "false", "false", "true") == "true"
	metrics := l.text("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "", address+", with its path such as /v1/metrics",
		isBase(l.deployed))
	c.metricsHeaders = l.secret("OTEL_EXPORTER_OTLP_METRICS_HEADERS", headerPairs, areHeaders)
	c.MetricsCumulative = l.oneOf("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "delta", "delta", "lowmemory",
		"cumulative") == "cumulative"
	c.MetricsInterval = time.Duration(l.number("OTEL_METRIC_EXPORT_INTERVAL", 60_000, 1000,
		3_600_000)) * time.Millisecond
	off := l.oneOf("OTEL_METRICS_EXPORTER", "otlp", "otlp", "none") == "none"
	if c.TracesOff {
		return
	}
	if endpoint != "" {
		c.TracesEndpoint = endpoint + "/v1/traces"
		metrics = cmp.Or(metrics, endpoint+"/v1/metrics")
	}
	if !off {
		c.MetricsEndpoint = metrics
	}
}

func isRatio(v string) bool {
	f, err := strconv.ParseFloat(v, 64)
	return err == nil && f >= 0 && f <= 1
}

func isServiceName(v string) bool {
	return len(v) <= 100 && strings.Trim(v, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == ""
}

// TracesHeaders returns the headers of each request to the traces collector.
func (c Config) TracesHeaders() map[string]string { return headersOf(c.otlpHeaders) }

// MetricsHeaders returns the headers of each request to the metrics collector.
func (c Config) MetricsHeaders() map[string]string {
	if c.metricsHeaders.Reveal() != "" {
		return headersOf(c.metricsHeaders)
	}
	return headersOf(c.otlpHeaders)
}

// ResourceAttributes returns the attributes that describe the sender of metrics.
func (c Config) ResourceAttributes() map[string]string {
	attributes, _ := parsePairs(c.resource) // already validated
	return attributes
}

func headersOf(s Secret) map[string]string {
	headers, _ := parsePairs(s.Reveal()) // already validated
	return headers
}

const (
	pairs       = "pairs as name=value with commas between them, values percent-encoded"
	headerPairs = "headers: " + pairs
)

func areHeaders(text string) bool {
	headers, ok := parsePairs(text)
	for name, value := range headers {
		ok = ok && httpguts.ValidHeaderFieldName(name) && httpguts.ValidHeaderFieldValue(value)
	}
	return ok
}

func areAttributes(text string) bool {
	attributes, ok := parsePairs(text)
	for name, value := range attributes {
		ok = ok && name != "" && len(name) <= 100 && len(value) <= 255 && utf8.ValidString(name+value)
	}
	return ok && len(attributes) <= 16
}

// parsePairs reads pairs in the form of OTEL_EXPORTER_OTLP_HEADERS and OTEL_RESOURCE_ATTRIBUTES
// (https://opentelemetry.io/docs/specs/otel/protocol/exporter/#specifying-headers-via-environment-variables).
func parsePairs(text string) (all map[string]string, ok bool) {
	all = map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		name, value, both := strings.Cut(pair, "=")
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if err != nil || !both {
			return nil, false
		}
		all[strings.TrimSpace(name)] = value
	}
	return all, true
}
