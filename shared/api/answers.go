package api

import (
	"fmt"
	"slices"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/engine/chat"
	"github.com/countersign-run/countersign/shared/engine/effect"
	"github.com/countersign-run/countersign/shared/telemetry/obs"
)

const maxClientError = 4 << 10 // bytes of a client's error message

// postAnswers records what a client reports about calls of a stored run. It can report some of the calls or all of
// them.
func postAnswers(r *request) (any, error) {
	id, err := r.id("runId")
	if err != nil {
		return nil, err
	}
	var in struct {
		Results []chat.Result `json:"results"`
	}
	if _, err := r.decode(&in); err != nil {
		return nil, err
	}
	answers, err := callAnswers(in.Results)
	if err != nil {
		return nil, err
	}
	ctx, cancel := r.working()
	defer cancel()
	obs.SetRun(ctx, id)
	v, err := r.api.Loop.Answer(ctx, r.uid, id, answers...)
	if err != nil {
		return nil, err
	}
	return r.api.withApprovals(ctx, r.uid, v)
}

// callAnswers checks the results as far as it can without the run.
func callAnswers(results []chat.Result) ([]effect.CallAnswer, error) {
	if len(results) == 0 || len(results) > model.MaxCalls {
		return nil, fault.Invalid("results", "must have the results of 1 to %d calls", model.MaxCalls)
	}
	answers := make([]effect.CallAnswer, len(results))
	for i, res := range results {
		field := fmt.Sprintf("results/%d/", i)
		same := func(earlier chat.Result) bool { return earlier.CallID == res.CallID }
		switch {
		case !run.ValidID(res.CallID):
			return nil, fault.Invalid(field+"callId", "invalid ID")
		case slices.ContainsFunc(results[:i], same):
			return nil, fault.Invalid(field+"callId", "duplicate: an earlier result has this call ID")
		}
		var err error
		if answers[i], err = callAnswer(field+"result", res); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// callAnswer returns the answer to record for the result. field is the result's place in the request, for errors.
func callAnswer(field string, res chat.Result) (effect.CallAnswer, error) {
	switch {
	case len(res.Result) > chat.MaxResult:
		return effect.CallAnswer{}, fault.Invalid(field, "longer than %d bytes", chat.MaxResult)
	case res.IsError:
		return effect.CallAnswer{ActionID: res.CallID,
			Error: "The client could not do it: " + clip.Text(res.Words(), maxClientError)}, nil
	}
	return effect.CallAnswer{ActionID: res.CallID, Result: res.Value()}, nil
}
