package countersign_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/countersign-run/countersign/shared/countersign"
)

// TestTracerProvider has a run that two processes move be traced in both, the second linked to the first, and each span
// name its session.
func TestTracerProvider(t *testing.T) {
	p, st, spans := &post{}, openStore(t), tracetest.NewSpanRecorder()
	options := countersign.Options{Name: "clerk", Store: st, Provider: newScript(mailTo("a@x.org"), say("Sent.")),
		Tools: p.tools(), TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))}
	res, err := newAgent(t, options).NewSession().Send(t.Context(), "Write to Ana.")
	if err != nil || res.Status != countersign.Waiting {
		t.Fatalf("%v %+v; want res.Status %v", err, res, countersign.Waiting)
	}
	later := newAgent(t, options)
	if err := later.Resolve(t.Context(), res.Approvals[0], countersign.Yes()); err != nil {
		t.Fatal(err)
	}
	s, err := later.Resume(t.Context(), res.SessionID)
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range s.Continue(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	for _, s := range spans.Ended() { // children end before their parents
		names = append(names, s.Name())
		text := fmt.Sprint(s.Attributes())
		if !strings.Contains(text, res.SessionID) || strings.Contains(text, "a@x.org") {
			t.Errorf("%s: %s", s.Name(), text)
		}
		if s.InstrumentationScope().Name != "github.com/countersign-run/countersign" {
			t.Errorf("%s is made by %s", s.Name(), s.InstrumentationScope().Name)
		}
	}
	if got := strings.Join(names, ", "); got != "chat script, invoke_agent sdk-clerk, execute_tool send_mail, "+
		"chat script, invoke_agent sdk-clerk" {
		t.Errorf("%s", got)
	}
	first, last := spans.Ended()[1], spans.Ended()[4]
	if links := last.Links(); len(links) != 1 || links[0].SpanContext.SpanID() != first.SpanContext().SpanID() ||
		links[0].SpanContext.TraceID() != first.SpanContext().TraceID() {
		t.Errorf("the second part links to %+v", links)
	}
}

// Spans go to whatever the TracerProvider is made with; here they are kept.
func ExampleOptions_tracerProvider() {
	spans := tracetest.NewSpanRecorder()
	agent, err := countersign.New(countersign.Options{
		Provider:       newScript(call("get_weather", map[string]any{"city": "Lisbon"}), say("21 degrees.")),
		Tools:          []*countersign.Tool{getWeather},
		TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)),
	})
	if err != nil {
		panic(err)
	}
	defer agent.Close()
	if _, err := agent.NewSession().Send(context.Background(), "How is Lisbon?"); err != nil {
		panic(err)
	}
	for _, s := range spans.Ended() {
		fmt.Println(s.Name())
	}
	// Output:
	// chat script
	// execute_tool get_weather
	// chat script
	// invoke_agent sdk-agent
}
