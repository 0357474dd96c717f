// Package collector is a collector of OpenTelemetry's traces, by OTLP over HTTP with protocol buffers
// (https://opentelemetry.io/docs/specs/otlp/#otlphttp), for tests that look at what was sent.
package collector

import (
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"

	collect "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	v1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

const maxBody = 8 << 20

// Collector is a handler. The zero value is ready for use.
type Collector struct {
	mu      sync.Mutex
	all     []*v1.ResourceSpans
	headers []http.Header
	came    chan struct{} // closed when a request comes
}

// Received returns what was sent, and the headers of each request.
func (c *Collector) Received() ([]*v1.ResourceSpans, []http.Header) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.all), slices.Clone(c.headers)
}

// Await waits until so many spans were sent, and returns what was: an answer is complete before the spans of its
// request are sent.
func (c *Collector) Await(ctx context.Context, spans int) ([]*v1.ResourceSpans, error) {
	for {
		c.mu.Lock()
		if c.came == nil {
			c.came = make(chan struct{})
		}
		all, came, n := slices.Clone(c.all), c.came, 0
		c.mu.Unlock()
		for _, r := range all {
			for _, s := range r.ScopeSpans {
				n += len(s.Spans)
			}
		}
		if n >= spans {
			return all, nil
		}
		select {
		case <-came:
		case <-ctx.Done():
			return all, fmt.Errorf("%d spans of %d were sent: %w", n, spans, ctx.Err())
		}
	}
}

// ServeHTTP takes one request of an exporter.
func (c *Collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/v1/traces" || r.Method != http.MethodPost ||
		r.Header.Get("Content-Type") != "application/x-protobuf" {
		http.Error(w, "POST /v1/traces with protocol buffers is needed", http.StatusNotFound)
		return
	}
	var in collect.ExportTraceServiceRequest
	if err := read(r, &in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all, c.headers = append(c.all, in.ResourceSpans...), append(c.headers, r.Header)
	if c.came != nil {
		close(c.came)
		c.came = nil
	}
	w.Header().Set("Content-Type", "application/x-protobuf") // of an empty answer: all was taken
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
