// Package collector collects OpenTelemetry's traces and metrics, by OTLP over HTTP with protocol buffers
// (https://opentelemetry.io/docs/specs/otlp/#otlphttp), for tests of exported telemetry.
package collector

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"

	collectmetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	collect "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	v1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

const maxBody = 8 << 20

// Collector is an HTTP handler. The zero value is ready for use.
type Collector struct {
	mu      sync.Mutex
	all     []*v1.ResourceSpans
	metrics []*metrics.ResourceMetrics
	headers []http.Header
	came    chan struct{} // closed when a request arrives
}

// Received returns the received spans, and the headers of each request.
func (c *Collector) Received() ([]*v1.ResourceSpans, []http.Header) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.all), slices.Clone(c.headers)
}

// Await waits until the given number of spans has arrived, and returns them. It is needed because an answer is
// complete before the spans of its request are sent.
func (c *Collector) Await(ctx context.Context, spans int) (all []*v1.ResourceSpans, err error) {
	n := 0
	err = c.Until(ctx, func() bool {
		all, _ = c.Received()
		n = 0
		for _, r := range all {
			for _, s := range r.ScopeSpans {
				n += len(s.Spans)
			}
		}
		return n >= spans
	})
	if err != nil {
		return all, fmt.Errorf("%d spans of %d were sent: %w", n, spans, err)
	}
	return all, nil
}

// Until waits until enough returns true.
func (c *Collector) Until(ctx context.Context, enough func() bool) error {
	for {
		c.mu.Lock()
		if c.came == nil {
			c.came = make(chan struct{})
		}
		came := c.came
		c.mu.Unlock()
		if enough() {
			return nil
		}
		select {
		case <-came:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// ServeHTTP receives one request of an exporter.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var spans collect.ExportTraceServiceRequest
	var measured collectmetrics.ExportMetricsServiceRequest
	into, known := map[string]proto.Message{"/v1/traces": &spans, "/v1/metrics": &measured}[r.URL.Path]
	if !known || r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/x-protobuf" {
		http.Error(w, "use POST /v1/traces or /v1/metrics with protocol buffers", http.StatusNotFound)
		return
	}
	if err := read(r, into); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all, c.metrics = append(c.all, spans.ResourceSpans...), append(c.metrics, measured.ResourceMetrics...)
	c.headers = append(c.headers, r.Header)
	if c.came != nil {
		close(c.came)
		c.came = nil
	}
	w.Header().Set("Content-Type", "application/x-protobuf") // an empty answer means that everything was accepted
}

func read(r *http.Request, into proto.Message) error {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		unzipped, err := gzip.NewReader(r.Body)
		if err != nil {
			return err
		}
		body = unzipped
	}
	data, err := io.ReadAll(io.LimitReader(body, maxBody))
	if err != nil {
		return err
	}
	return proto.Unmarshal(data, into)
}
