package app_test

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/collector"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// measures waits until the collector has so many of each instrument with these attributes, and nothing else. For a
// gauge the number is the value, and for a histogram the number of measurements.
func measures(t *testing.T, c *collector.Collector, want map[string]float64) {
	t.Helper()
	got := map[string]float64{}
	ctx, cancel := context.WithTimeout(t.Context(), await.Most)
	defer cancel()
	if c.Until(ctx, func() bool {
		clear(got)
		for name, v := range c.Measured() {
			n := v.Sum
			if v.Count > 0 {
				n = float64(v.Count)
			}
			duration := strings.HasPrefix(name, "countersign.approval.oldest") || name == "countersign.log.lag"
			if n > 0 && !duration {
				got[name] = n
			}
		}
		maps.DeleteFunc(want, func(_ string, n float64) bool { return n == 0 })
		return maps.Equal(got, want)
	}) == nil {
		return
	}
	for name := range got {
		if got[name] != want[name] {
			t.Errorf("%s is %v", name, got[name])
		}
	}
	for name := range want {
		if got[name] == 0 {
			t.Errorf("%s is not there", name)
		}
	}
	t.FailNow()
}

// swept sweeps, and executes what the sweep requests.
func (w *proved) swept() {
	w.t.Helper()
	if a, err := w.Sweep(w.t.Context()); err != nil || a.HTTP != http.StatusOK {
		w.t.Fatal(err, a)
	}
	w.deliver()
}

// TestMetricsOfRuns checks the exact metrics of runs that are approved, rejected and abandoned. A request sends its
// metrics at its end, so a process that is killed later loses none.
func TestMetricsOfRuns(t *testing.T) {
	for _, temporality := range []string{"delta", "cumulative"} {
		t.Run(temporality, func(t *testing.T) { metricsAreSent(t, temporality) })
	}
}

func metricsAreSent(t *testing.T, temporality string) {
	w, c, forward := collectedTimed(t, "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE="+temporality,
		"OTEL_RESOURCE_ATTRIBUTES=cloud.region=europe-west1", "OTEL_SERVICE_NAME=agents", "APPROVAL_TTL=20m")
	const (
		agent = " gen_ai.agent.name=assistant"
		chat  = "gen_ai.client.operation.duration gen_ai.operation.name=chat gen_ai.provider.name=gcp.gen_ai" +
			" gen_ai.request.model=fake"
		usage = "gen_ai.client.token.usage" + agent + " gen_ai.request.model=fake gen_ai.token.type="
		kind  = " countersign.approval.kind="
		mail  = kind + "approval gen_ai.tool.name=gmail_send"
	)
	is := map[string]float64{}
	asked := func(model fakegemini.ModelFunc) testkit.Answer {
		t.Helper()
		w.SetModel(model)
		a := w.ask()
		is["countersign.run.started"+agent]++
		for _, name := range []string{chat, usage + "input", usage + "output"} {
			is[name]++
		}
		return a
	}
	wants := testkit.Wants("gmail_send", testkit.Mail("bob@example.com", "CANARY-s", "CANARY-body"))

	approved := asked(wants)
	is["countersign.approval.requested"+mail]++
	measures(t, c, is)
	w.approve(approved)
	is["countersign.approval.duration countersign.approval.decision=approve_once"+mail]++
	is["countersign.tool.duration gen_ai.tool.name=gmail_send"]++
	is["countersign.run.duration countersign.run.status=completed"+agent]++
	is[chat], is[usage+"input"], is[usage+"output"] = 2, 2, 2
	measures(t, c, is)

	rejected := asked(wants)
	is["countersign.approval.requested"+mail]++
	if a, err := w.Resolve(t.Context(), "ana", rejected.Approvals[0], "reject"); err != nil || a.HTTP != http.StatusOK {
		t.Fatal(err, a)
	}
	w.deliver()
	is["countersign.approval.duration countersign.approval.decision=reject"+mail]++
	is["countersign.run.duration countersign.run.status=completed"+agent]++
	measures(t, c, is)

	busy := 1
	asked(func(r fakegemini.Request) fakegemini.Turn {
		if busy--; busy >= 0 {
			return fakegemini.Turn{Status: http.StatusServiceUnavailable}
		}
		return wants(r)
	})
	is["countersign.retry countersign.retry.of=model"]++
	is["countersign.approval.requested"+mail]++
	w.swept()
	is["countersign.approval.waiting"+kind+"approval"] = 1
	measures(t, c, is)

	forward(21 * time.Minute)
	w.swept()
	is["countersign.sweep.found"]++
	is["countersign.approval.duration countersign.approval.decision=expired"+mail]++
	is["countersign.run.duration countersign.run.status=failed error.type=PolicyError.expired"+agent]++
	measures(t, c, is)

	forward(10 * time.Minute)
	w.swept()
	is["countersign.approval.waiting"+kind+"approval"] = 0
	measures(t, c, is)

	text := fmt.Sprint(c.Metrics())
	for _, content := range []string{"bob@", "CANARY", `"ana"`, "ana@", "please"} {
		if strings.Contains(text, content) {
			t.Errorf("what was measured has %s", content)
		}
	}
	for _, who := range []string{`"agents"`, `"europe-west1"`, `"service.instance.id"`} {
		if !strings.Contains(text, who) {
			t.Errorf("nothing names %s", who)
		}
	}
	if _, headers := c.Received(); headers[0].Get("X-Api-Key") != "CANARY-key" {
		t.Errorf("it came with %v", headers[0])
	}
}

// TestMetricsOfSearches checks that the model request of a search is measured like those of its run.
func TestMetricsOfSearches(t *testing.T) {
	c, to := newCollector(t)
	w, _ := withReader(t, http.NotFoundHandler(), "OTEL_EXPORTER_OTLP_ENDPOINT="+to)
	w.SetModel(func(r fakegemini.Request) fakegemini.Turn {
		if r.Search || len(r.Responses()) > 0 {
			return fakegemini.Turn{Text: "At six."}
		}
		return fakegemini.Turn{Calls: []fakegemini.Call{{Name: "google_web_search",
			Args: map[string]any{"query": "harbour hours"}}}}
	})
	if a := w.askOf("reader"); a.Status != "completed" {
		t.Fatal(string(a.Body))
	}
	const agent, asked = " gen_ai.agent.name=reader", " gen_ai.request.model=fake"
	const tokens, of = "gen_ai.client.token.usage", " gen_ai.token.type="
	chat := "gen_ai.client.operation.duration gen_ai.operation.name=chat gen_ai.provider.name=gcp.gen_ai" + asked
	measures(t, c, map[string]float64{"countersign.run.started" + agent: 1,
		"countersign.run.duration countersign.run.status=completed" + agent: 1,
		"countersign.tool.duration gen_ai.tool.name=google_web_search":      1, chat: 3,
		tokens + agent + asked + of + "input": 2, tokens + agent + asked + of + "output": 2,
		tokens + asked + of + "input": 1, tokens + asked + of + "output": 1})
}

// TestMetricsDisabled checks that none are sent if metrics, or all of OpenTelemetry, are disabled.
func TestMetricsDisabled(t *testing.T) {
	for _, setting := range []string{"OTEL_SDK_DISABLED=true", "OTEL_METRICS_EXPORTER=none"} {
		t.Run(setting, func(t *testing.T) {
			if all := stopped(t, setting).Metrics(); len(all) > 0 {
				t.Errorf("%d were sent", len(all))
			}
		})
	}
}

// TestMetricsElsewhere sends metrics to another address than the traces.
func TestMetricsElsewhere(t *testing.T) {
	elsewhere, to := newCollector(t)
	w, c := collected(t, "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT="+to+"/v1/metrics",
		"OTEL_EXPORTER_OTLP_METRICS_HEADERS=x-api-key=CANARY-other")
	w.mail()
	w.ask()
	ctx, cancel := context.WithTimeout(t.Context(), await.Most)
	defer cancel()
	if err := elsewhere.Until(ctx, func() bool { return len(elsewhere.Metrics()) > 0 }); err != nil {
		t.Fatal(err)
	}
	if _, headers := elsewhere.Received(); len(c.Metrics()) > 0 || headers[0].Get("X-Api-Key") != "CANARY-other" {
		t.Errorf("%d to the other, and with %v", len(c.Metrics()), headers[0])
	}
	if strings.Contains(w.Logs.String(), "CANARY-other") {
		t.Error("a line has the key")
	}
}

// TestMetricsOfConcurrentRequests checks that requests that end while another is in progress send nothing, and that the
// last one sends the metrics of all.
func TestMetricsOfConcurrentRequests(t *testing.T) {
	w, c := collected(t)
	begun, release := make(chan struct{}), make(chan struct{})
	w.SetModel(func(r fakegemini.Request) fakegemini.Turn {
		if strings.Contains(fmt.Sprintf("%s", r.Raw), "slow") {
			close(begun)
			<-release
		}
		return fakegemini.Turn{Text: "Done."}
	})
	last := make(chan testkit.Answer, 1)
	go func() { last <- w.call("POST", "/api/agent/run", `{"prompt":"slow"}`) }()
	<-begun
	for range 5 {
		w.ask()
	}
	// The last request that prepared the deployment sends after its answer, possibly including the beginning of the
	// slow run.
	const started = "countersign.run.started gen_ai.agent.name=assistant"
	if n := c.Measured()[started].Sum; n > 1 || len(c.Metrics()) > 1 {
		t.Errorf("%v runs were sent in %d requests", n, len(c.Metrics()))
	}
	close(release)
	if a := <-last; a.HTTP != http.StatusOK {
		t.Fatal(a)
	}
	ctx, cancel := context.WithTimeout(t.Context(), await.Most)
	defer cancel()
	if err := c.Until(ctx, func() bool { return c.Measured()[started].Sum == 6 }); err != nil {
		t.Fatal(err)
	}
	if len(c.Metrics()) > 2 {
		t.Errorf("the runs were sent in %d requests", len(c.Metrics()))
	}
}

// collectedTimed deploys Countersign with a collector and a clock that can be advanced.
func collectedTimed(t *testing.T, settings ...string) (*proved, *collector.Collector, func(time.Duration)) {
	t.Helper()
	c, to := newCollector(t)
	w, forward := deployTimed(t, append([]string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + to,
		"OTEL_EXPORTER_OTLP_HEADERS=x-api-key=CANARY-key"}, settings...)...)
	return w, c, forward
}
