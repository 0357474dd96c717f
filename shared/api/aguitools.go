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
	"github.com/countersign-run/countersign/shared/engine/journal"
)

// checkPageTools checks what the page says of its own tools.
func (r *request) checkPageTools(ctx context.Context, its []run.PageTool) error {
	if len(its) == 0 {
		return nil
	}
	taken := slices.Concat(r.api.BuiltIn, r.api.Loop.AwaitTools(ctx).Names())
	_, err := chat.PageTools("tools", "parameters", its, chat.NamesOf(taken...))
	return err
}

// goOn tells the run of the request. Where it has waited for what the page's tools have returned, it goes on here, so
// that the model's words are told as they come. A client lets go of what it has returned once it is told the run, which
// has it by then.
func (t telling) goOn(ctx context.Context, in agui.Request, runID string) error {
	var v *run.View
	took, err := t.r.takeResults(ctx, in, runID, func(answers []effect.CallAnswer) (err error) {
		emit := t.emit(ctx)
		v, err = t.r.api.Loop.AnswerAndGoOn(ctx, t.r.uid, runID, func(n journal.Update) {
			if !t.out.started() && t.catchUp(ctx, runID) != nil {
				return // it is told when it rests
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

// catchUp tells what is stored of the run.
func (t telling) catchUp(ctx context.Context, runID string) error {
	if err := t.recall(ctx, runID); err != nil {
		return err
	}
	_, events, err := t.r.api.Loop.Get(ctx, t.r.uid, runID)
	if err != nil {
		return err
	}
	return t.to.Add(events)
}

// takeResults has what the page's tools have returned to calls of the run taken, if some of these wait for it.
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

// late reports whether another tab was faster with a result, or the time of its call is up: the others may still count,
// and what counts is told with the run.
func late(err error) bool {
	s := fault.As(err).Status()
	return err != nil && (s == http.StatusConflict || s == http.StatusGone)
}

// resultsOf returns what the page's tools have returned to calls of the run that wait for it. What a client says of
// others is its history, of which it sends all each time. had reports whether any of it is of the run.
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

// of returns what the call has returned, or nil.
func of(callID string, results []agui.Result) *agui.Result {
	at := slices.IndexFunc(results, func(r agui.Result) bool { return r.CallID == callID })
	if at < 0 {
		return nil
	}
	return &results[at]
}

// answersAGUI returns the answers to those of the calls that the client has a result of.
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
