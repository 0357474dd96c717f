package otlp_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collect "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	v1 "go.opentelemetry.io/proto/otlp/metrics/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/countersign-run/countersign/shared/telemetry/metrics"
	"github.com/countersign-run/countersign/shared/telemetry/metrics/otlp"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/collector"
)

var (
	asked = &metrics.Instrument{Name: "asked", Unit: "{run}", Description: "Runs that were asked for."}
	took  = &metrics.Instrument{Kind: metrics.Histogram, Name: "took", Unit: "s", Bounds: []float64{1, 2.5}}
	open  = &metrics.Instrument{Kind: metrics.Gauge, Name: "waiting", Unit: "{approval}"}
	red   = metrics.Attr{Key: "colour", Value: "red"}
	none  = metrics.Attr{Key: "error.type"}
)

var began = time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC)

// world is a sender with its collector. The test sets the collector's first answers.
type world struct {
	*otlp.Sender
	to  collector.Collector
	log bytes.Buffer

	mu      sync.Mutex
	now     time.Time
	answers []int
	tried   int
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	w.tried++
	answer := http.StatusOK
	if len(w.answers) > 0 {
		answer, w.answers = w.answers[0], w.answers[1:]
	}
	w.mu.Unlock()
	if answer != http.StatusOK {
		rw.WriteHeader(answer)
		return
	}
	w.to.ServeHTTP(rw, r)
}

func newWorld(t *testing.T, o otlp.Options, answers ...int) *world {
	t.Helper()
	w := &world{now: began, answers: answers}
	to := httptest.NewServer(w)
	t.Cleanup(to.Close)
	o.Endpoint, o.Every, o.Log = to.URL+"/v1/metrics", time.Hour, slog.New(slog.NewTextHandler(&w.log, nil))
	o.Resource = append(o.Resource, metrics.Attr{Key: "service.instance.id", Value: t.Name()})
	w.Sender = otlp.Open(o, w.clock)
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// wants compares the collector's series with want, a list of "name=sum/count".
func (w *world) wants(t *testing.T, want string) {
	t.Helper()
	var got []string
	measured := w.to.Measured()
	for _, name := range []string{"asked", "asked colour=red", "took", "waiting"} {
		if v, ok := measured[name]; ok {
			got = append(got, fmt.Sprintf("%s=%v/%d", name, v.Sum, v.Count))
		}
	}
	if strings.Join(got, ", ") != want {
		t.Errorf("%s was sent, and not %s", strings.Join(got, ", "), want)
	}
}

// TestMessage compares the sent message with OpenTelemetry's own.
func TestMessage(t *testing.T) {
	w := newWorld(t, otlp.Options{Release: "v1", Headers: map[string]string{"X-Api-Key": "k"}})
	w.Metrics().Measure(asked, 3, red, none)
	w.Metrics().Measure(took, 2)
	w.Metrics().Measure(took, 5)
	w.Metrics().Measure(open, 1.5)
	w.mu.Lock()
	w.now = began.Add(time.Second)
	w.mu.Unlock()
	w.Send(t.Context())
	from, to := uint64(began.UnixNano()), uint64(began.Add(time.Second).UnixNano())
	attr := func(key, value string) []*common.KeyValue {
		return []*common.KeyValue{{Key: key, Value: &common.AnyValue{
			Value: &common.AnyValue_StringValue{StringValue: value}}}}
	}
	sum := 7.0
	const delta = v1.AggregationTemporality_AGGREGATION_TEMPORALITY_DELTA
	want := &v1.ResourceMetrics{
		Resource: &resource.Resource{Attributes: attr("service.instance.id", t.Name())},
		ScopeMetrics: []*v1.ScopeMetrics{{
			Scope: &common.InstrumentationScope{Name: "github.com/countersign-run/countersign", Version: "v1"},
			Metrics: []*v1.Metric{
				{Name: "asked", Unit: "{run}", Description: "Runs that were asked for.", Data: &v1.Metric_Sum{
					Sum: &v1.Sum{AggregationTemporality: delta, IsMonotonic: true, DataPoints: []*v1.NumberDataPoint{{
						StartTimeUnixNano: from, TimeUnixNano: to, Attributes: attr("colour", "red"),
						Value: &v1.NumberDataPoint_AsInt{AsInt: 3}}}}}},
				{Name: "took", Unit: "s", Data: &v1.Metric_Histogram{Histogram: &v1.Histogram{
					AggregationTemporality: delta, DataPoints: []*v1.HistogramDataPoint{{StartTimeUnixNano: from,
						TimeUnixNano: to, Count: 2, Sum: &sum, BucketCounts: []uint64{0, 1, 1},
						ExplicitBounds: []float64{1, 2.5}}}}}},
				{Name: "waiting", Unit: "{approval}", Data: &v1.Metric_Gauge{Gauge: &v1.Gauge{
					DataPoints: []*v1.NumberDataPoint{{TimeUnixNano: from,
						Value: &v1.NumberDataPoint_AsDouble{AsDouble: 1.5}}}}}}}}}}
	if got := w.to.Metrics(); len(got) != 1 || !proto.Equal(got[0], want) {
		t.Errorf("%s", prototext.Format(&collect.ExportMetricsServiceRequest{ResourceMetrics: got}))
	}
	if _, headers := w.to.Received(); headers[0].Get("X-Api-Key") != "k" {
		t.Errorf("it came with %v", headers[0])
	}
}

// TestSendErrors checks that values that could not be sent are kept, and sent once with the next values.
func TestSendErrors(t *testing.T) {
	for name, cumulative := range map[string]bool{"delta": false, "cumulative": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, otlp.Options{Cumulative: cumulative}, http.StatusOK, http.StatusServiceUnavailable,
				http.StatusTooManyRequests, http.StatusBadGateway)
			w.Send(t.Context()) // nothing
			w.Metrics().Measure(asked, 1)
			w.Send(t.Context())
			w.wants(t, "asked=1/0")
			w.Metrics().Measure(asked, 1)
			w.Send(t.Context())
			w.Send(t.Context()) // nothing new, only the kept values
			w.Metrics().Measure(took, 2)
			w.Send(t.Context())
			w.wants(t, "asked=1/0")
			w.Metrics().Measure(took, 3)
			w.Send(t.Context())
			w.wants(t, "asked=2/0, took=5/2")
			w.Send(t.Context()) // nothing
			if w.tried != 5 {
				t.Errorf("%d requests", w.tried)
			}
		})
	}
}

// TestSendRefused checks that refused values are dropped and logged, and not sent again.
func TestSendRefused(t *testing.T) {
	w := newWorld(t, otlp.Options{}, http.StatusBadRequest)
	w.Metrics().Measure(asked, 1)
	w.Send(t.Context())
	w.Metrics().Measure(asked, 1)
	w.Send(t.Context())
	w.wants(t, "asked=1/0")
	if !strings.Contains(w.log.String(), "answers 400") {
		t.Error(w.log.String())
	}
}

// TestCollectorDown checks the limit of the values that are kept for a collector that is down.
func TestCollectorDown(t *testing.T) {
	w := newWorld(t, otlp.Options{Release: strings.Repeat("v", 1<<10)},
		slices.Repeat([]int{http.StatusServiceUnavailable}, 300)...)
	for range 301 {
		w.Metrics().Measure(asked, 1)
		w.Send(t.Context())
	}
	if got := w.to.Measured()["asked"].Sum; got < 2 || got > 256 {
		t.Errorf("%v of 301 were sent", got)
	}
	if !strings.Contains(w.log.String(), "lost") {
		t.Error("nobody is told of what is lost")
	}
}

// TestPartialSuccess checks that a partial success is logged.
func TestPartialSuccess(t *testing.T) {
	answer, err := proto.Marshal(&collect.ExportMetricsServiceResponse{
		PartialSuccess: &collect.ExportMetricsPartialSuccess{RejectedDataPoints: 3, ErrorMessage: "no deltas"}})
	if err != nil {
		t.Fatal(err)
	}
	to := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(answer) }))
	defer to.Close()
	var log bytes.Buffer
	s := otlp.Open(otlp.Options{Endpoint: to.URL, Every: time.Hour, Log: slog.New(slog.NewTextHandler(&log, nil))},
		time.Now)
	s.Metrics().Measure(asked, 1)
	if err := s.Close(); err != nil || !strings.Contains(log.String(), `points=3 why="no deltas"`) {
		t.Error(err, log.String())
	}
}

// TestSendEvery checks that values are also sent at intervals, without a call of Send.
func TestSendEvery(t *testing.T) {
	c := &collector.Collector{}
	to := httptest.NewServer(c)
	defer to.Close()
	s := otlp.Open(otlp.Options{Endpoint: to.URL + "/v1/metrics", Every: time.Millisecond, Log: slog.Default()},
		time.Now)
	defer s.Close()
	s.Metrics().Measure(asked, 1)
	ctx, cancel := context.WithTimeout(t.Context(), await.Most)
	defer cancel()
	if err := c.Until(ctx, func() bool { return c.Measured()["asked"].Sum == 1 }); err != nil {
		t.Error(err)
	}
}

// TestSendConcurrently checks that each value is sent once, whatever number of goroutines measure and send at the same
// time.
func TestSendConcurrently(t *testing.T) {
	for name, cumulative := range map[string]bool{"delta": false, "cumulative": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, otlp.Options{Cumulative: cumulative}, http.StatusServiceUnavailable, http.StatusOK,
				http.StatusServiceUnavailable)
			var all sync.WaitGroup
			for range 8 {
				all.Go(func() {
					for range 20 {
						w.Metrics().Measure(asked, 1, red)
						w.Metrics().Measure(took, 1)
						w.Send(t.Context())
					}
				})
			}
			all.Wait()
			w.wants(t, "asked colour=red=160/0, took=160/160")
		})
	}
}
