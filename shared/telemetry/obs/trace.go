package obs

import (
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

// trace is the position of a request in a distributed trace.
type trace struct {
	id      string // 32 hexadecimal digits; empty if there is no trace
	span    string // 16 hexadecimal digits, or empty
	sampled bool
}

var (
	// https://www.w3.org/TR/trace-context/#traceparent-header: a later version may add fields after a hyphen.
	traceparent = lazyregexp.New(`^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$`)
	// https://docs.cloud.google.com/trace/docs/trace-context#legacy-http-header: the span is a decimal number.
	cloudTrace = lazyregexp.New(`^([0-9a-fA-F]{32})(?:/([0-9]{1,20}))?(?:;o=([0-9]+))?$`)
)

const maxTraceHeader = 128

// traceOf reads the W3C header, or Google's older one if that is missing or invalid.
func traceOf(h http.Header) trace {
	if t, ok := parseTraceparent(h.Get("traceparent")); ok {
		return t
	}
	t, _ := parseCloudTrace(h.Get("X-Cloud-Trace-Context"))
	return t
}

func parseTraceparent(s string) (trace, bool) {
	m := traceparent.FindStringSubmatch(s)
	if len(s) > maxTraceHeader || m == nil || m[1] == "ff" || m[1] == "00" && m[5] != "" || zero(m[2]) || zero(m[3]) {
		return trace{}, false
	}
	flags, err := strconv.ParseUint(m[4], 16, 8)
	return trace{id: m[2], span: m[3], sampled: err == nil && flags&1 == 1}, err == nil
}

func parseCloudTrace(s string) (trace, bool) {
	m := cloudTrace.FindStringSubmatch(s)
	if len(s) > maxTraceHeader || m == nil || zero(m[1]) {
		return trace{}, false
	}
	t := trace{id: strings.ToLower(m[1]), sampled: m[3] == "1"}
	if span, err := strconv.ParseUint(m[2], 10, 64); err == nil && span != 0 {
		t.span = fmt.Sprintf("%016x", span)
	}
	return t, true
}

func zero(hex string) bool { return strings.Trim(hex, "0") == "" }

func (t trace) attrs(project string) []slog.Attr {
	name := t.id
	if project != "" {
		name = "projects/" + project + "/traces/" + t.id
	}
	attrs := []slog.Attr{slog.String("logging.googleapis.com/trace", name)}
	if t.span != "" {
		attrs = append(attrs, slog.String("logging.googleapis.com/spanId", t.span))
	}
	return append(attrs, slog.Bool("logging.googleapis.com/trace_sampled", t.sampled))
}
