package observe

import (
	"cmp"
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/telemetry/metrics"
)

// The instruments of Recorder.Metrics. Names and buckets follow OpenTelemetry's semantic conventions for generative AI
// where these define them (https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-metrics/).
var (
	runsStarted = &metrics.Instrument{Name: "countersign.run.started", Unit: "{run}",
		Description: "Started runs."}
	runDuration = &metrics.Instrument{Kind: metrics.Histogram, Name: "countersign.run.duration", Unit: "s",
		Description: "Duration of ended runs, including the time that they waited.", Bounds: longBounds}
	approvalsRequested = &metrics.Instrument{Name: "countersign.approval.requested", Unit: "{approval}",
		Description: "Requested approvals and reviews."}
	approvalDuration = &metrics.Instrument{Kind: metrics.Histogram, Name: "countersign.approval.duration", Unit: "s",
		Description: "Waiting time of approvals and reviews, until they were decided or expired.", Bounds: longBounds}
	modelDuration = &metrics.Instrument{Kind: metrics.Histogram, Name: "gen_ai.client.operation.duration", Unit: "s",
		Description: "Duration of requests to the model, including retries.", Bounds: shortBounds}
	tokens = &metrics.Instrument{Kind: metrics.Histogram, Name: "gen_ai.client.token.usage", Unit: "{token}",
		Description: "Tokens of requests to the model, as the model counts them.", Bounds: []float64{1, 4, 16, 64, 256,
			1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}}
	toolDuration = &metrics.Instrument{Kind: metrics.Histogram, Name: "countersign.tool.duration", Unit: "s",
		Description: "Duration of tool calls, including retries.", Bounds: shortBounds}
	discarded = &metrics.Instrument{Name: "countersign.model.discarded", Unit: "{call}",
		Description: "Model calls that began while a commit was under way and were dropped with the commit."}
	retries = &metrics.Instrument{Name: "countersign.retry", Unit: "{retry}",
		Description: "Retries of model requests, tool calls, commits, and steps of processes that died."}
)

var (
	shortBounds = []float64{0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	// includes the time that people take to decide
	longBounds = []float64{1, 5, 15, 60, 300, 900, 3600, 4 * 3600, 24 * 3600, 7 * 24 * 3600}
)

// Values of the attribute countersign.retry.of.
const (
	RetryTool   = "tool"
	RetryCommit = "commit"
	RetryStep   = "step" // of a process that died
	retryModel  = "model"
)

// CountDiscarded counts one model call that began ahead of a commit and was dropped.
func (to *Recorder) CountDiscarded() { to.Metrics.Measure(discarded, 1) }

// CountRetry counts one retry of this kind.
func (to *Recorder) CountRetry(what string) {
	to.Metrics.Measure(retries, 1, attr("countersign.retry.of", what))
}

func attr(key attribute.Key, value string) metrics.Attr {
	return metrics.Attr{Key: string(key), Value: value}
}

// MeasureCommit records the measurements that follow from one commit of a run, made at the time now.
func (to *Recorder) MeasureCommit(r run.Run, now time.Time, events []run.Event, approvals map[string]*run.Approval) {
	m := to.Metrics
	if m == nil {
		return
	}
	agent := attr(attrAgent, r.AgentName())
	for _, e := range events {
		switch {
		case e.Queued != nil:
			m.Measure(runsStarted, 1, agent)
		case e.End != nil:
			m.Measure(runDuration, e.At.Sub(r.CreatedAt).Seconds(), agent,
				attr(attrStatus, string(e.End.Status)), errorType(e.End.Error))
		}
	}
	for _, a := range approvals {
		tool, kind := attr(attrTool, a.Tool), attr("countersign.approval.kind", string(a.Kind))
		if a.RequestedAt.Equal(now) {
			m.Measure(approvalsRequested, 1, tool, kind)
		}
		if a.DecidedAt.Equal(now) {
			m.Measure(approvalDuration, a.DecidedAt.Sub(a.RequestedAt).Seconds(), tool, kind,
				attr("countersign.approval.decision", cmp.Or(string(a.Decision), string(a.Status))))
		}
	}
}

// errorType returns the attribute of an error, or an empty attribute if why is nil.
func errorType(why *run.ErrorInfo) metrics.Attr {
	if why == nil {
		return metrics.Attr{}
	}
	return attr(attrError, string(why.Class)+"."+string(why.Code))
}

func errorTypeOf(err error) metrics.Attr {
	if err == nil {
		return metrics.Attr{}
	}
	return errorType(run.ErrorInfoOf(fault.As(err)))
}

// A timing measures a model request or a tool call in progress. The zero value measures nothing.
type timing struct {
	to    *Recorder // nil: nothing is measured
	began time.Time
	of    metrics.Attr // the model or the tool
	agent metrics.Attr
}

func (to *Recorder) time(r run.Run, key attribute.Key, value string) timing {
	if to.Metrics == nil {
		return timing{}
	}
	return timing{to, to.Clock(), attr(key, value), attr(attrAgent, r.AgentName())}
}

// countRetries returns a context in which retries of the model's client are counted.
func (t timing) countRetries(ctx context.Context) context.Context {
	if t.to == nil {
		return ctx
	}
	return model.OnRetry(ctx, func() { t.to.CountRetry(retryModel) })
}

func (t timing) endModel(r *model.Reply, err error) {
	if t.to == nil {
		return
	}
	m := t.to.Metrics
	m.Measure(modelDuration, t.to.Clock().Sub(t.began).Seconds(), attr(attrOperation, "chat"),
		attr(attrProvider, provider), t.of, errorTypeOf(err))
	if err != nil {
		return
	}
	if u := r.Usage; u.Prompt > 0 { // 0: the service has not counted the tokens
		m.Measure(tokens, float64(u.Prompt), t.of, t.agent, attr("gen_ai.token.type", "input"))
		m.Measure(tokens, float64(u.Output+u.Thoughts), t.of, t.agent, attr("gen_ai.token.type", "output"))
	}
}

// MeasuredModel returns the model for requests that a tool makes outside a run. They are measured like those of a run,
// but without the agent.
func MeasuredModel(m model.Model, in *metrics.Metrics, now func() time.Time) model.Model {
	if m == nil || in == nil {
		return m
	}
	return measuredModel{model.Wrapped{Model: m}, &Recorder{Metrics: in, Clock: now}}
}

type measuredModel struct {
	model.Wrapped
	to *Recorder
}

func (m measuredModel) Generate(ctx context.Context, req model.Request, delta func(string)) (*model.Reply, error) {
	name := cmp.Or(req.Settings.Name, m.Name())
	t := timing{to: m.to, began: m.to.Clock(), of: attr(attrRequestModel, name)}
	reply, err := m.Model.Generate(t.countRetries(ctx), req, delta)
	t.endModel(reply, err)
	return reply, err
}

func (t timing) endTool(a *run.Action, err error) {
	if t.to == nil {
		return
	}
	why := errorTypeOf(err)
	if a != nil && a.Error != nil {
		why = errorType(a.Error)
	}
	t.to.Metrics.Measure(toolDuration, t.to.Clock().Sub(t.began).Seconds(), t.of, why)
}
