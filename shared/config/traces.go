package config

import (
	"cmp"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// traces reads where OpenTelemetry's traces are sent, by its standard environment variables.
func (l *loader) traces(c *Config) {
	const headers = "headers as name=value with commas between them, values percent-encoded"
	endpoint := l.text("OTEL_EXPORTER_OTLP_ENDPOINT", "", "the address of a collector of OTLP over HTTP, such as "+
		"https://otel.example.com (http only on a loopback address), without a query", isBase(l.deployed))
	c.tracesHeaders = l.secret("OTEL_EXPORTER_OTLP_HEADERS", headers, func(v string) bool {
		_, ok := headersOf(v)
		return ok
	})
	c.TracesProtocol = l.oneOf("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf", "http/protobuf")
	c.TracesOff = l.oneOf("OTEL_SDK_DISABLED", "false", "false", "true") == "true"
	c.TraceService = l.text("OTEL_SERVICE_NAME", cmp.Or(c.Service, "countersign"),
		"a name of up to 100 letters, digits, dots, hyphens and underscores", isServiceName)
	c.TraceSampler = l.oneOf("OTEL_TRACES_SAMPLER", "always_on", "always_on", "always_off", "traceidratio",
		"parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio")
	ratio := l.text("OTEL_TRACES_SAMPLER_ARG", "1", "a number from 0 to 1", isRatio)
	c.TraceRatio, _ = strconv.ParseFloat(ratio, 64) // it was checked
	c.TraceContent = l.oneOf("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "false", "false", "true") == "true"
	if !c.TracesOff {
		c.TracesEndpoint = endpoint
	}
}

func isRatio(v string) bool {
	f, err := strconv.ParseFloat(v, 64)
	return err == nil && f >= 0 && f <= 1
}

func isServiceName(v string) bool {
	return len(v) <= 100 && strings.Trim(v, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == ""
}

// TracesHeaders returns the headers of each request to the collector.
func (c Config) TracesHeaders() map[string]string {
	headers, _ := headersOf(c.tracesHeaders.Reveal()) // they were checked
	return headers
}

// headersOf reads headers in the form of OTEL_EXPORTER_OTLP_HEADERS
// (https://opentelemetry.io/docs/specs/otel/protocol/exporter/#specifying-headers-via-environment-variables).
func headersOf(text string) (headers map[string]string, ok bool) {
	headers = map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		name, value, both := strings.Cut(pair, "=")
		name = strings.TrimSpace(name)
		value, err := url.PathUnescape(strings.TrimSpace(value))
		if err != nil || !both || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, false
		}
		headers[name] = value
	}
	return headers, true
}
