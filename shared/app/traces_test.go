package app_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "go.opentelemetry.io/proto/otlp/trace/v1"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/collector"
)

func newCollector(t *testing.T) (c *collector.Collector, address string) {
	t.Helper()
	c = &collector.Collector{}
	to := httptest.NewServer(c)
	t.Cleanup(to.Close)
	return c, to.URL
}

// collected deploys Countersign with a collector.
func collected(t *testing.T, settings ...string) (*proved, *collector.Collector) {
	t.Helper()
	c, to := newCollector(t)
	return deploy(t, append([]string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + to,
		"OTEL_EXPORTER_OTLP_HEADERS=x-api-key=CANARY-key", "OTEL_SERVICE_NAME=agents"}, settings...)...), c
}

// stopped runs a request with the setting, and returns the collector after the process was stopped, which sends the
// rest.
func stopped(t *testing.T, setting string) *collector.Collector {
	t.Helper()
	w, c := collected(t, setting)
	w.mail()
	w.ask()
	if err := w.Stop(); err != nil {
		t.Fatal(err)
	}
	return c
}

// tree returns the spans in the order in which they began, each below its parent, and the trace and link of each root.
func tree(all []*v1.ResourceSpans) string {
	var b strings.Builder
	var spans []*v1.Span
	for _, r := range all {
		for _, s := range r.ScopeSpans {
			spans = append(spans, s.Spans...)
		}
	}
	slices.SortStableFunc(spans, func(a, b *v1.Span) int {
		return cmp.Compare(a.StartTimeUnixNano, b.StartTimeUnixNano)
	})
	traces, first := map[string]int{}, map[string]string{}
	for _, s := range spans {
		if len(s.ParentSpanId) > 0 {
			continue
		}
		traces[string(s.TraceId)] = len(traces) + 1
		first[string(s.SpanId)] = fmt.Sprint(len(traces))
		fmt.Fprintf(&b, "%s", s.Name)
		for _, l := range s.Links {
			fmt.Fprintf(&b, " -> %s", first[string(l.SpanId)])
		}
		fmt.Fprintln(&b)
		for _, c := range spans {
			if string(c.ParentSpanId) == string(s.SpanId) {
				fmt.Fprintf(&b, "  %s\n", c.Name)
			}
		}
	}
	return b.String()
}

// sent returns the collector's spans once it has so many.
func sent(t *testing.T, c *collector.Collector, spans int) []*v1.ResourceSpans {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), await.Most)
	defer cancel()
	all, err := c.Await(ctx, spans)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestTracesOfChat makes a page's agent request a click. Its run is in no store, but traced like others.
func TestTracesOfChat(t *testing.T) {
	w, c := collected(t)
	w.SetModel(testkit.Wants("click-x", map[string]any{}))
	if said := w.chat("/api/agent/chat", `{"message":"CANARY","toolDefinitions":`+clickTool+`}`); len(said.Calls) != 1 {
		t.Fatalf("%d %s; want len(said.Calls) 1", said.HTTP, said.Body)
	}
	all := sent(t, c, 2)
	if got := tree(all); got != "invoke_agent page\n  chat fake\n" {
		t.Errorf("got %s; want %q", got, "invoke_agent page\n  chat fake\n")
	}
	if strings.Contains(fmt.Sprint(all), "CANARY") {
		t.Error("a span has content")
	}
}

// TestTracesOfRuns sends a run that waits and continues to a collector. Each part belongs to its request, and the
// later part has a link to the first. Log lines name the trace. No span has content, and no line the key.
func TestTracesOfRuns(t *testing.T) {
	w, c := collected(t)
	w.mail()
	asked := w.ask()
	sent(t, c, 2)
	a, err := w.Resolve(t.Context(), "ana", asked.Approvals[0], "approve_once")
	if err != nil || a.HTTP != http.StatusOK {
		t.Fatalf("%v, %d %s; want a.HTTP %v", err, a.HTTP, a.Body, http.StatusOK)
	}
	w.deliver()
	all := sent(t, c, 5)
	if _, headers := c.Received(); headers[0].Get("X-Api-Key") != "CANARY-key" {
		t.Errorf("they came with %v", headers[0])
	}
	const want = "invoke_agent assistant\n  chat fake\ninvoke_agent assistant -> 1\n" +
		"  execute_tool gmail_send\n  chat fake\n"
	if got := tree(all); got != want {
		t.Errorf("got %s; want %v", got, want)
	}
	text := fmt.Sprint(all)
	for _, content := range []string{"bob@", "CANARY", "ana@", "please"} {
		if strings.Contains(text, content) {
			t.Errorf("a span has %s", content)
		}
	}
	if !strings.Contains(text, `"agents"`) {
		t.Error("no span names the service")
	}
	lines := w.Logs.String()
	id := fmt.Sprintf("%x", all[0].ScopeSpans[0].Spans[0].TraceId)
	if !strings.Contains(lines, `"logging.googleapis.com/trace":"`+id) && !strings.Contains(lines, "/traces/"+id) {
		t.Errorf("no line tells of trace %s", id)
	}
	if strings.Contains(lines, "CANARY-key") {
		t.Error("a line has the key")
	}
}

// TestTracesWithContent checks that traces have messages and arguments if the operator wants that.
func TestTracesWithContent(t *testing.T) {
	w, c := collected(t, "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true")
	w.mail()
	w.ask()
	text := fmt.Sprint(sent(t, c, 2))
	for _, content := range []string{"gen_ai.input.messages", "please do it", "gen_ai.output.messages", "CANARY-body"} {
		if !strings.Contains(text, content) {
			t.Errorf("no span has %s", content)
		}
	}
}

// TestTracesDisabled checks that none are made if OpenTelemetry is disabled, or samples none.
func TestTracesDisabled(t *testing.T) {
	for _, setting := range []string{"OTEL_SDK_DISABLED=true", "OTEL_TRACES_SAMPLER=always_off"} {
		t.Run(setting, func(t *testing.T) {
			c := stopped(t, setting)
			if all, _ := c.Received(); len(all) > 0 {
				t.Errorf("%d were sent", len(all))
			}
		})
	}
}

// TestTracesWithHangingCollector checks that it does not delay the answer.
func TestTracesWithHangingCollector(t *testing.T) {
	release := make(chan struct{})
	to := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(to.Close)
	w := deploy(t, "OTEL_EXPORTER_OTLP_ENDPOINT="+to.URL)
	w.SetModel(testkit.Says("Good morning."))
	answered := make(chan testkit.Answer, 1)
	go func() { answered <- w.call("POST", "/api/agent/run", `{"prompt":"good morning"}`) }()
	select {
	case a := <-answered:
		if a.HTTP != http.StatusOK {
			t.Errorf("%d %s; want a.HTTP %v", a.HTTP, a.Body, http.StatusOK)
		}
	case <-time.After(await.Most):
		t.Error("nobody was answered")
	}
	close(release)
}
