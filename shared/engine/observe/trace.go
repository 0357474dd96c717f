// Package observe makes the spans and the measurements of runs. Both follow OpenTelemetry's semantic conventions for
// generative AI as far as these go.
package observe

import (
	"cmp"
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/telemetry/metrics"
)

// The attributes of spans, from OpenTelemetry's semantic conventions for generative AI. The package semconv has had no
// constants for them since v1.41. These attributes hold no content: no words, arguments, results or addresses.
const (
	attrOperation      attribute.Key = "gen_ai.operation.name"
	attrProvider       attribute.Key = "gen_ai.provider.name"
	attrAgent          attribute.Key = "gen_ai.agent.name"
	attrConversation   attribute.Key = "gen_ai.conversation.id" // the thread
	attrRequestModel   attribute.Key = "gen_ai.request.model"
	attrMaxTokens      attribute.Key = "gen_ai.request.max_tokens"
	attrResponseModel  attribute.Key = "gen_ai.response.model"
	attrFinishReasons  attribute.Key = "gen_ai.response.finish_reasons"
	attrInputTokens    attribute.Key = "gen_ai.usage.input_tokens"
	attrCachedTokens   attribute.Key = "gen_ai.usage.cache_read.input_tokens" // part of the input
	attrOutputTokens   attribute.Key = "gen_ai.usage.output_tokens"
	attrThoughtsTokens attribute.Key = "gen_ai.usage.reasoning.output_tokens" // part of the output
	attrTool           attribute.Key = "gen_ai.tool.name"
	attrToolType       attribute.Key = "gen_ai.tool.type"
	attrToolCall       attribute.Key = "gen_ai.tool.call.id"
	attrError          attribute.Key = "error.type" // class.code of package fault
	attrRun            attribute.Key = "countersign.run.id"
	attrStatus         attribute.Key = "countersign.run.status" // at the end of the span
	attrAction         attribute.Key = "countersign.action.id"
)

// provider is the conventions' name for Google's models, whichever of its services answers.
const provider = "gcp.gen_ai"

// Recorder makes the spans and the measurements of the runs of one process. The zero value makes none.
type Recorder struct {
	// Tracer makes the spans of a run: invoke_agent for each process that advances it, and within it chat and
	// execute_tool. Nil makes none. Spans contain content, such as messages and results, only if TraceContent is set.
	Tracer       trace.Tracer
	TraceContent bool

	Metrics *metrics.Metrics // receives the measurements of runs; nil: none
	Clock   func() time.Time // for durations; needed with Metrics
}

// Trace is the span in which one process advances a run.
type Trace struct {
	to   *Recorder
	span Span
}

// NewTrace returns a trace that has not started.
func (to *Recorder) NewTrace() Trace { return Trace{to: to} }

// Create begins the first span of a run that is about to be created, unless the trace has begun already. It returns the
// traceparent that the run's document keeps, so that later processes can link to the span. It returns "" without a
// Tracer.
func (t *Trace) Create(ctx context.Context, r run.Run) string {
	if t.to.Tracer == nil {
		return ""
	}
	if t.span.span == nil {
		t.begin(ctx, r)
	}
	return t.Parent(ctx)
}

// Parent returns the traceparent of the span, or "" if the trace has not started.
func (t *Trace) Parent(ctx context.Context) string {
	if t.span.span == nil {
		return ""
	}
	kept := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpan(ctx, t.span.span), kept)
	return kept[traceParent]
}

const traceParent = "traceparent" // W3C Trace Context

// Enter returns ctx with the span "invoke_agent", in which the process advances the run. The span begins with the first
// step. It links to the run's first span and to the span that requested the work, if these are different. requester is
// the traceparent of the latter, or "".
func (t *Trace) Enter(ctx context.Context, r run.Run, requester string) context.Context {
	switch {
	case t.to.Tracer == nil:
		return ctx
	case t.span.span == nil:
		links := []trace.Link{linkTo(r.Trace)}
		if requester != "" && requester != r.Trace {
			links = append(links, linkTo(requester))
		}
		t.begin(ctx, r, trace.WithLinks(links...))
	}
	if trace.SpanFromContext(ctx) == t.span.span {
		return ctx
	}
	return trace.ContextWithSpan(ctx, t.span.span)
}

// linkTo returns a link to the span with this traceparent. Spans ignore an empty link.
func linkTo(traceparent string) trace.Link {
	return trace.LinkFromContext(propagation.TraceContext{}.Extract(context.Background(),
		propagation.MapCarrier{traceParent: traceparent}))
}

func (t *Trace) begin(ctx context.Context, r run.Run, options ...trace.SpanStartOption) {
	options = append(options, trace.WithAttributes(attrOperation.String("invoke_agent"), attrProvider.String(provider),
		attrAgent.String(r.AgentName()), attrConversation.String(r.ThreadID), attrRun.String(r.ID)))
	_, t.span.span = t.to.Tracer.Start(ctx, "invoke_agent "+r.AgentName(), options...)
}

// End ends the span, if the trace has begun. s is the run's state, or nil if it is unknown. err is the reason why the
// process stopped, or nil.
func (t *Trace) End(s *run.State, err error) {
	span := t.span
	if span.span == nil {
		return
	}
	t.span = Span{}
	if s != nil && s.Status != "" {
		span.span.SetAttributes(attrStatus.String(string(s.Status)))
		if s.End != nil && s.End.Error != nil {
			span.failed(s.End.Error)
		}
	}
	span.end(err)
}

// A Span is a part of a trace in progress, together with its measurements. The zero value is no span: without a tracer
// and metrics, spans cost nothing.
type Span struct {
	span    trace.Span
	content bool
	timing  timing
}

// TraceModel begins the span "chat" of a request to the model, and measures the request.
func (to *Recorder) TraceModel(ctx context.Context, r run.Run, m model.Model, req model.Request) (context.Context,
	Span) {
	if to.Tracer == nil && to.Metrics == nil {
		return ctx, Span{}
	}
	name := cmp.Or(req.Settings.Name, m.Name())
	t := to.time(r, attrRequestModel, name)
	if ctx = t.countRetries(ctx); to.Tracer == nil {
		return ctx, Span{timing: t}
	}
	ctx, span := to.Tracer.Start(ctx, "chat "+name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attrOperation.String("chat"), attrProvider.String(provider), attrConversation.String(r.ThreadID),
		attrRequestModel.String(name)))
	if n := req.Settings.MaxOutputTokens; n > 0 {
		span.SetAttributes(attrMaxTokens.Int(int(n)))
	}
	if to.TraceContent {
		span.SetAttributes(asked(req)...)
	}
	return ctx, Span{span, to.TraceContent, t}
}

// EndModel ends the span of a model request.
func (s Span) EndModel(r *model.Reply, err error) {
	if s.timing.endModel(r, err); s.span == nil {
		return
	}
	if err == nil {
		s.span.SetAttributes(attrResponseModel.String(r.Model), attrFinishReasons.StringSlice([]string{r.Finish}),
			attrInputTokens.Int(r.Usage.Prompt), attrCachedTokens.Int(r.Usage.Cached),
			attrOutputTokens.Int(r.Usage.Output+r.Usage.Thoughts), attrThoughtsTokens.Int(r.Usage.Thoughts))
		if s.content {
			s.span.SetAttributes(answered(r)...)
		}
	}
	s.end(err)
}

// TraceTool begins the span "execute_tool" of a call, and measures the call.
func (to *Recorder) TraceTool(ctx context.Context, r run.Run, a *run.Action) (context.Context, Span) {
	t := to.time(r, attrTool, a.Tool)
	if to.Tracer == nil {
		return ctx, Span{timing: t}
	}
	ctx, span := to.Tracer.Start(ctx, "execute_tool "+a.Tool, trace.WithAttributes(
		attrOperation.String("execute_tool"), attrConversation.String(r.ThreadID), attrTool.String(a.Tool),
		attrToolType.String("function"), attrToolCall.String(cmp.Or(a.CallID, a.ID)), attrAction.String(a.ID)))
	return ctx, Span{span, to.TraceContent, t}
}

// EndTool ends the span of the call, with its recorded outcome. err is the reason why nothing could be recorded, or
// nil.
func (s Span) EndTool(a *run.Action, err error) {
	if s.timing.endTool(a, err); s.span == nil {
		return
	}
	if a != nil && s.content {
		s.span.SetAttributes(done(a)...)
	}
	if a != nil && a.Error != nil {
		s.failed(a.Error)
	}
	s.end(err)
}

// end ends the span, as failed if err is not nil.
func (s Span) end(err error) {
	if err != nil {
		s.failed(run.ErrorInfoOf(fault.As(err)))
	}
	s.span.End()
}

func (s Span) failed(why *run.ErrorInfo) {
	s.span.SetAttributes(attrError.String(errorType(why).Value))
	s.span.SetStatus(codes.Error, "")
}
