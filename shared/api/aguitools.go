package api

import (
	"context"
	"net/http"
	"slices"

	"github.com/countersign-run/countersign/shared/agui"
	"github.com/countersign-run/countersign/shared/chat"
	"github.com/countersign-run/countersign/shared/effect"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/run"
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

// takeResults records what the page's tools have returned to calls of the run that wait for it. What a client says of
// others is its history, of which it sends all each time. It reports whether any of it is of the run.
func (r *request) takeResults(ctx context.Context, in agui.Request, runID string) (had bool, err error) {
	results := in.Results()
	if len(results) == 0 {
		return false, nil
	}
	for range 3 {
		v, _, err := r.api.Loop.Get(ctx, r.uid, runID)
		if err != nil {
			return false, err
		}
		had = slices.ContainsFunc(v.Actions, func(a *run.ActionView) bool { return of(a.ActionID, results) != nil })
		answers, err := answersAGUI(v.Calls, results)
		if err != nil || len(answers) == 0 {
			return had, err
		}
		_, err = r.api.Loop.Answer(ctx, r.uid, runID, answers...)
		if f := fault.As(err); err == nil || f.Status() != http.StatusConflict && f.Status() != http.StatusGone {
			return had, err
		}
		// another tab was faster with one of them, or its time is up: what counts is told with the run
	}
	return had, nil
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
