package loop_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/testkit/script"
)

// traced makes the env's loop record spans, and returns the recorder.
func (w *env) traced() *tracetest.SpanRecorder {
	spans := tracetest.NewSpanRecorder()
	w.loop.Tracer = sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans)).Tracer("test")
	return spans
}

// tree returns the spans in the order in which they began, with one dot for each parent, and with their attributes. It
// checks the attributes of the conversation and the run, and leaves them out.
func tree(t *testing.T, v *run.View, spans []sdktrace.ReadOnlySpan) string {
	t.Helper()
	slices.SortStableFunc(spans, func(a, b sdktrace.ReadOnlySpan) int { return a.StartTime().Compare(b.StartTime()) })
	depth, b := map[trace.SpanID]int{}, &strings.Builder{}
	for _, s := range spans {
		if cancelled(s) { // a model call ahead of a commit that failed
			continue
		}
		id := s.SpanContext().SpanID()
		depth[id] = 1
		if s.Parent().IsValid() {
			depth[id] = depth[s.Parent().SpanID()] + 1
		}
		fmt.Fprintf(b, "%s %s (%s)", strings.Repeat(".", depth[id]), s.Name(), s.SpanKind())
		for _, l := range s.Links() {
			if l.SpanContext.SpanID() != spans[0].SpanContext().SpanID() || !l.SpanContext.IsRemote() {
				t.Errorf("%s links to %s", s.Name(), l.SpanContext.SpanID())
			}
			b.WriteString(" -> first")
		}
		for _, a := range s.Attributes() {
			switch key, value := a.Key, a.Value.String(); key {
			case semconv.GenAIConversationIDKey:
				if value != v.ThreadID {
					t.Errorf("%s is of conversation %s", s.Name(), value)
				}
			case "countersign.run.id":
				if value != v.RunID {
					t.Errorf("%s is of run %s", s.Name(), value)
				}
			case "countersign.action.id", semconv.GenAIOperationNameKey, semconv.GenAIProviderNameKey,
				semconv.GenAIToolTypeKey, semconv.GenAIToolCallIDKey:
				if value == "" {
					t.Errorf("%s has no %s", s.Name(), key)
				}
			default:
				short := strings.TrimPrefix(strings.TrimPrefix(string(key), "gen_ai."), "countersign.")
				fmt.Fprintf(b, " %s=%s", short, value)
			}
		}
		fmt.Fprintf(b, " %s\n", s.Status().Code)
	}
	return b.String()
}

// cancelled reports whether the span is of a model call that was cancelled.
func cancelled(s sdktrace.ReadOnlySpan) bool {
	return slices.ContainsFunc(s.Attributes(), func(a attribute.KeyValue) bool {
		return a.Value.String() == "ModelError.cancelled"
	})
}

// TestSpans checks the spans of a run that looks something up, waits for its user, and is taken up by another process,
// and of one that also loses this process after its effect.
func TestSpans(t *testing.T) {
	const begun = `. invoke_agent assistant (internal) agent.name=assistant run.status=awaiting_confirmation Unset
` + chatSpan + `
.. execute_tool lookup (internal) tool.name=lookup error.type=ToolExecutionError.no_entry Error
` + chatSpan + `
. invoke_agent assistant (internal) -> first agent.name=assistant run.status=completed Unset
`
	onEachStore(t, func(t *testing.T, open func(testing.TB) *env) {
		spansOf(t, open(t), 0, begun+".. execute_tool draft (internal) tool.name=draft Unset\n"+chatSpan+"\n")
		// the eighth commit would record the draft
		spansOf(t, open(t), 8, begun+chatSpan+"\n", "invoke_agent assistant", "execute_tool draft")
	})
}

const chatSpan = `.. chat script (client) request.model=script request.max_tokens=500 response.model=script ` +
	`response.finish_reasons=["STOP"] usage.input_tokens=100 usage.cache_read.input_tokens=60 ` +
	`usage.output_tokens=27 usage.reasoning.output_tokens=7 Unset`

// spansOf kills the process of a run at a commit, if killed is not 0. It compares the spans that were ended with want,
// and those that the dead process left open with left.
func spansOf(t *testing.T, w *env, killed int, want string, left ...string) {
	t.Helper()
	spans := w.traced()
	used := model.Usage{Prompt: 100, Cached: 60, Output: 20, Thoughts: 7, Total: 127}
	w.assistant().Model.MaxOutputTokens = 500
	w.model.Then(
		script.Turn{Calls: []script.Call{{Name: "lookup", Args: map[string]any{"word": "missing"}}}, Usage: used},
		script.Turn{Calls: []script.Call{{Name: "draft",
			Args: map[string]any{"to": []string{"bob@x.org"}, "text": "secret"}}}, Usage: used},
		script.Turn{Text: "Done.", Usage: used})
	life := func() error {
		if _, err := w.loop.Start(context.Background(), loop.StartRequest{UID: "ana", Key: "k", BodyHash: "h"},
			loop.Prompt{Text: "tell bob"}); err != nil {
			return err
		}
		for _, a := range w.open("ana") {
			if _, err := w.loop.Resolve(context.Background(), approval.Resolution{UID: "ana",
				ApprovalID: a.ApprovalID, Decision: run.ApproveOnce}); err != nil {
				return err
			}
		}
		return w.deliver(context.Background())
	}
	if killed > 0 {
		w.loop.Store = mortal(w.store, killed, false)
	}
	if died, err := mortally(life); died != (killed > 0) || err != nil || len(w.effects) != 1 {
		t.Fatalf("died: %t, %v, and done: %v", died, err, w.effects)
	}
	for range 3 {
		w.tick(3 * time.Minute)
		if _, err := w.loop.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := life(); err != nil {
			t.Fatal(err)
		}
	}
	v, _, err := w.loop.Get(t.Context(), "ana", run.KeyedRunID("ana", "k"))
	if err != nil || v.Status != run.Completed || len(w.effects) != 1 {
		t.Fatalf("%v %+v, done: %v", err, v, w.effects)
	}
	if got := tree(t, v, spans.Ended()); got != want {
		t.Errorf("got %s; want %v", got, want)
	}
	var lost []string // begun by the process that died
	for _, s := range spans.Started() {
		if s.EndTime().IsZero() && !strings.HasPrefix(s.Name(), "chat ") { // nor a call ahead that is not over yet
			lost = append(lost, s.Name())
		}
	}
	if !slices.Equal(lost, left) {
		t.Errorf("the process that died left %v", lost)
	}
	for _, s := range spans.Started() {
		if text := fmt.Sprint(s.Attributes(), s.Name(), s.Status(), s.Events()); strings.Contains(text, "bob") ||
			strings.Contains(text, "secret") || strings.Contains(text, "ana") || len(s.Events()) > 0 {
			t.Errorf("a span has content: %s", text)
		}
	}
}

// TestSpansOfFailures checks that failures of the model and the store are in the spans of a run, with the class and
// code of the error, and that no span begins if there is nothing to do.
func TestSpansOfFailures(t *testing.T) {
	w := newEnv(t)
	spans := w.traced()
	w.model.Then(script.Turn{Err: fault.New(fault.Model, "overloaded", "It is busy.")})
	v, err := w.loop.Start(t.Context(), loop.StartRequest{UID: "ana", Key: "k", BodyHash: "h"},
		loop.Prompt{Text: "hello"})
	if err != nil {
		t.Fatal(err)
	}
	const want = `. invoke_agent assistant (internal) agent.name=assistant run.status=failed error.type=ModelError.overloaded Error
.. chat script (client) request.model=script error.type=ModelError.overloaded Error
`
	if got := tree(t, v, spans.Ended()); got != want {
		t.Errorf("got %s; want %v", got, want)
	}
	if _, err := w.loop.Start(t.Context(), loop.StartRequest{UID: "ana", Key: "k", BodyHash: "h"},
		loop.Prompt{Text: "hello"}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.loop.Advance(t.Context(), v.RunID, nil); err != nil {
		t.Fatal(err)
	}
	if n := len(spans.Started()); n != 2 {
		t.Errorf("%d spans began", n)
	}
	_, err = w.loop.Start(t.Context(), loop.StartRequest{UID: "eve", ThreadID: v.ThreadID}, loop.Prompt{Text: "hello"})
	if last := spans.Ended()[2:]; err == nil || len(last) != 1 || last[0].Name() != "invoke_agent assistant" ||
		!slices.Contains(last[0].Attributes(), attribute.String("error.type", "AuthError.not_found")) {
		t.Errorf("%v, and of a refused start: %v", err, last)
	}
}

// TestSpansOfCaller checks that a run's spans are part of its caller's trace.
func TestSpansOfCaller(t *testing.T) {
	w := newEnv(t)
	spans := w.traced()
	w.model.Then(script.Turn{Text: "Hello."})
	ctx, caller := w.loop.Tracer.Start(t.Context(), "the program's own")
	if _, err := w.loop.Start(ctx, loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "hello"}); err != nil {
		t.Fatal(err)
	}
	for _, s := range spans.Ended() {
		if s.SpanContext().TraceID() != caller.SpanContext().TraceID() {
			t.Errorf("%s is of another trace", s.Name())
		}
	}
	if all := spans.Ended(); len(all) != 2 || all[1].Parent().SpanID() != caller.SpanContext().SpanID() {
		t.Errorf("%v", all)
	}
}

// TestTraceWithoutTracer checks the allocations without a tracer.
func TestTraceWithoutTracer(t *testing.T) {
	w := newEnv(t)
	ex := w.loop.NewExecution("r1", nil)
	ctx, a, req, r := t.Context(), &run.Action{ID: "a1"}, model.Request{}, &model.Reply{}
	if n := testing.AllocsPerRun(100, func() {
		if ex.Trace.Create(ctx, run.Run{ID: "r1"}) != "" || ex.Trace.Enter(ctx, ex.Run, "") != ctx {
			t.Fatal("something is traced")
		}
		_, chat := ex.TraceModel(ctx, ex.Run, ex.Model, req)
		chat.EndModel(r, nil)
		_, call := ex.TraceTool(ctx, ex.Run, a)
		call.EndTool(a, nil)
		ex.EndTrace(nil)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestTraceAttributeNames compares our names with the last constants that semconv had for them.
func TestTraceAttributeNames(t *testing.T) {
	known := []attribute.Key{semconv.GenAIOperationNameKey, semconv.GenAIProviderNameKey, semconv.GenAIAgentNameKey,
		semconv.GenAIConversationIDKey, semconv.GenAIRequestModelKey, semconv.GenAIRequestMaxTokensKey,
		semconv.GenAIResponseModelKey, semconv.GenAIResponseFinishReasonsKey, semconv.GenAIUsageInputTokensKey,
		semconv.GenAIUsageCacheReadInputTokensKey, semconv.GenAIUsageOutputTokensKey, semconv.GenAIToolNameKey,
		semconv.GenAIToolTypeKey, semconv.GenAIToolCallIDKey, semconv.ErrorTypeKey,
		"gen_ai.usage.reasoning.output_tokens"} // which came after them
	w := newEnv(t)
	spans := w.traced()
	w.model.Then(script.Turn{Calls: []script.Call{{Name: "lookup", Args: map[string]any{"word": "missing"}}}})
	w.assistant().Model.MaxOutputTokens = 1
	start(t, w, "hello")
	seen := map[attribute.Key]bool{}
	for _, s := range spans.Ended() {
		for _, a := range s.Attributes() {
			if seen[a.Key] = true; !slices.Contains(known, a.Key) && !strings.HasPrefix(string(a.Key), "countersign.") {
				t.Errorf("%s is no attribute of the conventions", a.Key)
			}
		}
	}
	for _, key := range known {
		if !seen[key] {
			t.Errorf("no span has %s", key)
		}
	}
}

// TestSpansOfASummary checks that each request to the model has a span, also for summaries.
func TestSpansOfASummary(t *testing.T) {
	w := &talk{env: compressing(newEnv(t))}
	spans := w.traced()
	for i := range 4 {
		w.ask(fmt.Sprintf("question %d", i), counted(strings.Repeat("word ", 800), 1200*(i+1)))
	}
	v, _ := w.ask("the last question", counted("A SUMMARY", 4000), counted("So be it.", 1500))
	asked := 0
	for _, s := range spans.Ended() {
		if s.Name() == "chat script" {
			asked++
		}
	}
	if len(w.compressions(v)) != 1 || asked != 6 {
		t.Errorf("%d spans, %+v", asked, w.compressions(v))
	}
}

// TestSpansOfHandedOverRun checks that each part of a run that was handed over links to the first part, and to the part
// that requested it.
func TestSpansOfHandedOverRun(t *testing.T) {
	w := newEnv(t)
	spans := w.traced()
	w.model.Then(
		script.Turn{Calls: []script.Call{{Name: "lookup", Args: map[string]any{"word": "a"}}}},
		script.Turn{Calls: []script.Call{{Name: "lookup", Args: map[string]any{"word": "b"}}}},
		script.Turn{Text: "Done."})
	w.call = 20 * time.Second
	ctx, cancel := w.calling(t.Context())
	defer cancel()
	if _, err := w.loop.Start(ctx, loop.StartRequest{UID: "ana"}, loop.Prompt{Text: "hello"}); err != nil {
		t.Fatal(err)
	}
	if err := w.deliver(t.Context()); err != nil {
		t.Fatal(err)
	}
	var parts []sdktrace.ReadOnlySpan
	for _, s := range spans.Ended() {
		if !s.Parent().IsValid() {
			parts = append(parts, s)
		}
	}
	if len(parts) < 3 {
		t.Fatalf("%d parts", len(parts))
	}
	for i, s := range parts {
		var to []trace.SpanID
		for _, l := range s.Links() {
			to = append(to, l.SpanContext.SpanID())
		}
		var want []trace.SpanID
		if i > 0 {
			want = append(want, parts[0].SpanContext().SpanID())
		}
		if i > 1 {
			want = append(want, parts[i-1].SpanContext().SpanID())
		}
		if !slices.Equal(to, want) {
			t.Errorf("part %d links to %v, want %v", i, to, want)
		}
	}
}
