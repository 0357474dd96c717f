package journal

import (
	"cmp"
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
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

// A Span is a part of a trace in progress, together with its measurements. The zero value is no span: without
// Env.Tracer and Env.Metrics, spans cost nothing.
type Span struct {
	span    trace.Span
	content bool
	timing  timing
}

// TraceNew begins the first span of a run that is about to be created, unless ex has a span already. It returns the
// traceparent that the run's document keeps, so that later processes can link to the span. It returns "" without a
// Tracer.
func TraceNew(ctx context.Context, ex *Execution, r run.Run) string {
	if ex.Tracer == nil {
		return ""
	}
	if ex.span.span == nil {
		beginSpan(ctx, ex, r)
	}
	return traceOf(ctx, ex)
}

// traceOf returns the traceparent of ex's span, or "" if ex has none.
func traceOf(ctx context.Context, ex *Execution) string {
	if ex.span.span == nil {
		return ""
	}
	kept := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(trace.ContextWithSpan(ctx, ex.span.span), kept)
	return kept[traceParent]
}

const traceParent = "traceparent" // W3C Trace Context

// TraceRun returns ctx with the span "invoke_agent", in which ex advances the run. The span begins with ex's first
// step. It links to the run's first span and to the span that requested the work, if these are different.
func TraceRun(ctx context.Context, ex *Execution) context.Context {
	switch {
	case ex.Tracer == nil:
		return ctx
	case ex.span.span == nil:
		links := []trace.Link{linkTo(ex.Run.Trace)}
		if ex.Asked != "" && ex.Asked != ex.Run.Trace {
			links = append(links, linkTo(ex.Asked))
		}
		beginSpan(ctx, ex, ex.Run, trace.WithLinks(links...))
	}
	if trace.SpanFromContext(ctx) == ex.span.span {
		return ctx
	}
	return trace.ContextWithSpan(ctx, ex.span.span)
}

// linkTo returns a link to the span with this traceparent. Spans ignore an empty link.
func linkTo(traceparent string) trace.Link {
	return trace.LinkFromContext(propagation.TraceContext{}.Extract(context.Background(),
		propagation.MapCarrier{traceParent: traceparent}))
}

func beginSpan(ctx context.Context, ex *Execution, r run.Run, options ...trace.SpanStartOption) {
	options = append(options, trace.WithAttributes(attrOperation.String("invoke_agent"), attrProvider.String(provider),
		attrAgent.String(r.AgentName()), attrConversation.String(r.ThreadID), attrRun.String(r.ID)))
	_, ex.span.span = ex.Tracer.Start(ctx, "invoke_agent "+r.AgentName(), options...)
}

// EndTrace ends the span in which ex advanced the run, if there is one. err is the reason why ex stopped, or nil.
func EndTrace(ex *Execution, err error) {
	span := ex.span
	if span.span == nil {
		return
	}
	ex.span = Span{}
	if ex.State != nil && ex.State.Status != "" {
		span.span.SetAttributes(attrStatus.String(string(ex.State.Status)))
		if end := ex.State.End; end != nil && end.Error != nil {
			span.failed(end.Error)
		}
	}
	if !Held(err) {
		span.end(err)
		return
	}
	span.end(nil)
}

// TraceModel begins the span "chat" of a model request, and measures the request.
func TraceModel(ctx context.Context, ex *Execution, req model.Request) (context.Context, Span) {
	if ex.Tracer == nil && ex.Metrics == nil {
		return ctx, Span{}
	}
	name := cmp.Or(req.Settings.Name, ex.Model.Name())
	t := timeOf(ex, attrRequestModel, name)
	if ctx = t.countRetries(ctx); ex.Tracer == nil {
		return ctx, Span{timing: t}
	}
	ctx, span := ex.Tracer.Start(ctx, "chat "+name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attrOperation.String("chat"), attrProvider.String(provider), attrConversation.String(ex.Run.ThreadID),
		attrRequestModel.String(name)))
	if n := req.Settings.MaxOutputTokens; n > 0 {
		span.SetAttributes(attrMaxTokens.Int(int(n)))
	}
	if ex.TraceContent {
		span.SetAttributes(asked(req)...)
	}
	return ctx, Span{span, ex.TraceContent, t}
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
func TraceTool(ctx context.Context, ex *Execution, a *run.Action) (context.Context, Span) {
	t := timeOf(ex, attrTool, a.Tool)
	if ex.Tracer == nil {
		return ctx, Span{timing: t}
	}
	ctx, span := ex.Tracer.Start(ctx, "execute_tool "+a.Tool, trace.WithAttributes(
		attrOperation.String("execute_tool"), attrConversation.String(ex.Run.ThreadID), attrTool.String(a.Tool),
		attrToolType.String("function"), attrToolCall.String(cmp.Or(a.CallID, a.ID)), attrAction.String(a.ID)))
	return ctx, Span{span, ex.TraceContent, t}
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
