// Package otlp sends metrics to a collector, with OpenTelemetry's protocol over HTTP
// (https://opentelemetry.io/docs/specs/otlp/#otlphttp). OpenTelemetry's own SDK for metrics would add 1.2 MB to each
// function. This package needs only three kinds of values in one message.
package otlp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/outbound"
	"github.com/countersign-run/countersign/shared/telemetry/metrics"
)

const (
	name      = "github.com/countersign-run/countersign" // library name in the sent metrics
	sendTime  = 2 * time.Second                          // of one request to the collector
	maxKept   = 256 << 10                                // bytes of unsent requests that are kept
	maxAnswer = 4 << 10                                  // bytes of a collector's answer that are read
	maxWhy    = 200                                      // bytes of a collector's message that are logged
)

// Options are the options of [Open].
type Options struct {
	Endpoint   string            // full URL for metrics
	Headers    map[string]string // of each request
	Resource   []metrics.Attr    // attributes of the measuring process, with a service.instance.id
	Release    string
	Cumulative bool          // send totals since the process began, not since the last request
	Every      time.Duration // interval of sending in addition to [Sender.Send]; a paused process sends nothing
	Log        *slog.Logger
}

// A Sender sends metrics. It is safe for concurrent use.
type Sender struct {
	o        Options
	metrics  *metrics.Metrics
	client   *http.Client
	resource []byte
	stop     context.CancelFunc
	timer    sync.WaitGroup

	turn chan struct{} // holds one value while no request is being sent
	kept []byte        // requests that could not be sent
}

// Open returns a sender with new, empty metrics.
func Open(o Options, now func() time.Time) *Sender {
	ctx, stop := context.WithCancel(context.Background())
	s := &Sender{o: o, metrics: metrics.New(now), resource: encodeResource(o.Resource), stop: stop,
		turn: make(chan struct{}, 1),
		client: &http.Client{Transport: outbound.Limit(nil, maxAnswer), Timeout: sendTime,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	s.turn <- struct{}{}
	s.timer.Go(func() { s.sendEvery(ctx) })
	return s
}

// Metrics returns the metrics that the sender sends.
func (s *Sender) Metrics() *metrics.Metrics { return s.metrics }

func (s *Sender) sendEvery(ctx context.Context) {
	tick := time.NewTicker(s.o.Every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.Send(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// Send sends all unsent metrics, and stops when ctx ends. If the collector is temporarily unavailable, the metrics are
// kept and sent with the next ones. A failure is logged.
func (s *Sender) Send(ctx context.Context) {
	select {
	case <-s.turn:
		defer func() { s.turn <- struct{}{} }()
	case <-ctx.Done(): // the request in progress contains most of them
		return
	}
	body := s.next()
	if len(body) == 0 {
		return
	}
	err := s.post(ctx, body)
	var refusal refusedError
	switch {
	case err == nil:
		s.kept = nil
	case errors.As(err, &refusal) || len(body) > maxKept:
		s.kept = nil
		s.o.Log.WarnContext(ctx, "metrics could not be sent and are lost", "error", err)
	default:
		s.kept = body
		s.o.Log.WarnContext(ctx, "metrics could not be sent and are kept", "error", err)
	}
}

// next returns the next request: kept metrics and new ones.
func (s *Sender) next() []byte {
	batch := s.metrics.Batch(!s.o.Cumulative)
	if !batch.New {
		return s.kept
	}
	before, temporality := s.kept, uint64(delta)
	if s.o.Cumulative { // cumulative totals include everything that was kept
		before, temporality = nil, cumulative
	}
	return append(slices.Clip(before), encode(s.resource, s.o.Release, batch, temporality)...)
}

// refusedError is the HTTP status of a collector that would refuse the same request again.
type refusedError int

func (e refusedError) Error() string { return fmt.Sprintf("the collector answers %d", int(e)) }

func (s *Sender) post(ctx context.Context, body []byte) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.o.Endpoint, bytes.NewReader(body))
	if err != nil {
		return err
	}
	for name, value := range s.o.Headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Content-Type", "application/x-protobuf")
	res, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	answer, _ := io.ReadAll(res.Body) // its content is only logged
	switch res.StatusCode {
	case http.StatusOK:
		if n, why := refused(answer); n > 0 {
			s.o.Log.WarnContext(ctx, "the collector did not take all metrics", "points", n, "why",
				clip.Text(why, maxWhy))
		}
		return nil
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return fmt.Errorf("the collector answers %d", res.StatusCode)
	}
	return refusedError(res.StatusCode)
}

// Close stops the timer and sends the remaining metrics. It returns nil; a failure is logged.
func (s *Sender) Close() error {
	s.stop()
	s.timer.Wait()
	ctx, cancel := context.WithTimeout(context.Background(), sendTime)
	defer cancel()
	s.Send(ctx)
	return nil
}
