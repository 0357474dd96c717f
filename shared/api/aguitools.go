package api

import (
	"context"
	"net/http"
	"slices"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/api/agui"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/chat"
	"github.com/countersign-run/countersign/shared/engine/effect"
	"github.com/countersign-run/countersign/shared/engine/unit"
)

// checkPageTools checks the definitions of the page's own tools.
func (r *request) checkPageTools(ctx context.Context, its []run.PageTool) error {
	if len(its) == 0 {
		return nil
	}
	taken := slices.Concat(r.api.BuiltIn, r.api.Loop.AwaitTools(ctx).Names())
	_, err := chat.PageTools("tools", "parameters", its, chat.NamesOf(taken...))
	return err
}

// goOn streams the run of the request. If the run waits for results of the page's tools, they continue it in this
// process, so the model's text streams as it arrives. A client drops its results as soon as the run's events reach it;
// the run has recorded them by then.
func (t runStream) goOn(ctx context.Context, in agui.Request, runID string) error {
	var v *run.View
	took, err := t.r.takeResults(ctx, in, runID, func(answers []effect.CallAnswer) (err error) {
		emit := t.emit(ctx)
		v, err = t.r.api.Loop.AnswerAndGoOn(ctx, t.r.uid, runID, func(n unit.Update) {
			if !t.out.started() && t.catchUp(ctx, runID) != nil {
				return // streamed when the run rests
			}
			emit(n)
		}, answers...)
		return err
	})
	switch {
	case err != nil:
		return err
	case !took:
		return t.run(ctx, runID)
	}
	return t.follow(ctx, v)
}

// catchUp streams the run's stored events.
func (t runStream) catchUp(ctx context.Context, runID string) error {
	if err := t.recall(ctx, runID); err != nil {
		return err
	}
	_, events, err := t.r.api.Loop.Get(ctx, t.r.uid, runID)
	if err != nil {
		return err
	}
	return t.to.Add(events)
}

// takeResults passes the results of the page's tools to take, if calls of the run wait for them. It reads the run
// again, up to three times, if another tab delivers a result first.
func (r *request) takeResults(ctx context.Context, in agui.Request, runID string,
	take func([]effect.CallAnswer) error) (took bool, err error) {
	for range 3 {
		answers, _, err := r.resultsOf(ctx, in, runID)
		if err != nil || len(answers) == 0 {
			return false, err
		}
		if err = take(answers); !late(err) {
			return err == nil, err
		}
	}
	return false, nil
}

// late reports whether err means that another tab delivered a result first, or that the call's deadline has passed.
// Other results of the request can still count; the stream of the run shows which did.
func late(err error) bool {
	s := fault.As(err).Status()
	return err != nil && (s == http.StatusConflict || s == http.StatusGone)
}

// resultsOf returns the results of the page's tools for calls of the run that wait. A client sends its whole history
// each time, so all other results are ignored. had reports whether any result belongs to the run.
func (r *request) resultsOf(ctx context.Context, in agui.Request, runID string) (answers []effect.CallAnswer, had bool,
	err error) {
	results := in.Results()
	if len(results) == 0 {
		return nil, false, nil
	}
	v, _, err := r.api.Loop.Get(ctx, r.uid, runID)
	if err != nil {
		return nil, false, err
	}
	had = slices.ContainsFunc(v.Actions, func(a *run.ActionView) bool { return of(a.ActionID, results) != nil })
	answers, err = answersAGUI(v.Calls, results)
	return answers, had, err
}

// of returns the result of the call, or nil.
func of(callID string, results []agui.Result) *agui.Result {
	at := slices.IndexFunc(results, func(r agui.Result) bool { return r.CallID == callID })
	if at < 0 {
		return nil
	}
	return &results[at]
}

// answersAGUI returns an answer for each of the calls that the client has sent a result for.
func answersAGUI(calls []run.CallView, results []agui.Result) (answers []effect.CallAnswer, err error) {
	for _, c := range calls {
		got := of(c.CallID, results)
		if got == nil {
			continue
		}
		text, err := got.Text()
		if err != nil {
			return nil, err
		}
		a, err := callAnswer(got.Field, chat.Result{CallID: c.CallID, Result: text, IsError: got.Failed})
		if err != nil {
			return nil, err
		}
		answers = append(answers, a)
	}
	return answers, nil
}
