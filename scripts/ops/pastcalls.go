package main

import (
	"context"
	"time"

	"github.com/countersign-run/countersign/shared/agent/policy"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/engine/approval"
	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
)

// runsPage is the number of runs in one read. A run's document can have 256 KiB.
const runsPage = 20

// pastCall is a recorded call and its new judgement. A run that cannot be read is one pastCall without an event.
type pastCall struct {
	ex    *unit.Execution
	event run.Event
	by    approval.Judgement
	why   error // why the call cannot be judged
}

// The reasons why calls are not judged, in addition to those of package approval.
const (
	reasonGone       = "conversation_deleted" // by its user, an operator, or RETENTION
	reasonUnreadable = "run_unreadable"
	reasonText       = "texts_gone" // an earlier run of the conversation, from which the call may have text
)

// eachCall passes each selected call to each. It reads a page of runs at a time.
func eachCall(ctx context.Context, st store.Store, env *unit.Env, sel selection, each func(pastCall) error) error {
	reader := *env // approval.Again changes it
	q := document.AllRuns(runsPage)
	if sel.user != "" {
		q = document.RunsOf(sel.user, runsPage)
	}
	for d, err := range document.All(ctx, st, q) {
		if err != nil {
			return err
		}
		if began := document.RunFieldsOf(d).CreatedAt; !sel.until.IsZero() && !began.Before(sel.until) {
			continue
		}
		if err := callsOf(ctx, &reader, d, sel, each); err != nil {
			return err
		}
	}
	return nil
}

// callsOf judges the selected calls of one run.
func callsOf(ctx context.Context, env *unit.Env, d store.Doc, sel selection, each func(pastCall) error) error {
	ex := env.NewExecution(document.ID(d), nil)
	if err := ex.LoadRead(ctx, d); err != nil {
		if !unit.Stuck(err) {
			return err
		}
		return each(pastCall{ex: ex, why: err})
	}
	if sel.agent != "" && sel.agent != ex.Run.AgentName() || ex.Run.UpdatedAt.Before(sel.since) {
		return nil
	}
	var by approval.Judgement
	judge := func(tx *unit.Tx, e run.Event) (err error) {
		if !sel.has(e) {
			return nil
		}
		by, err = approval.Again(tx, e.ActionID, *e.Proposed)
		return err
	}
	for e, err := range ex.Replay(ctx, judge) {
		switch {
		case !sel.has(e):
			continue
		case err != nil && !unit.Stuck(err):
			return err
		}
		if err := each(pastCall{ex, e, by, err}); err != nil {
			return err
		}
	}
	return nil
}

// has reports whether the event proposed a selected call. A call that was asked again is one call.
func (sel selection) has(e run.Event) bool {
	return e.Proposed != nil && e.Proposed.Attempt == 0 && (sel.tool == "" || sel.tool == e.Proposed.Tool) &&
		sel.within(e.At)
}

func (sel selection) within(at time.Time) bool {
	return !at.Before(sel.since) && (sel.until.IsZero() || at.Before(sel.until))
}

// The outcomes of a policy's decision.
const (
	runs    = "runs"    // without a card
	asks    = "asks"    // its user, with a card
	refused = "refused" // the model reads why
)

// verdict is the decision about a call.
type verdict struct {
	Outcome string `json:"outcome"`
	Rule    string `json:"rule"`
}

// recorded returns the decision that the record of a call has.
func recorded(c run.ProposedCall) verdict {
	switch {
	case c.PolicyDecision == string(policy.Deny):
		return verdict{refused, c.Rule}
	case c.RequiresApproval:
		return verdict{asks, c.Rule}
	}
	return verdict{runs, c.Rule}
}

// again returns the new decision about a call.
func again(by approval.Judgement, c run.ProposedCall) verdict {
	switch {
	case by.Mode == policy.Deny:
		return verdict{refused, by.Rule}
	case approval.NeedsApproval(by, c):
		return verdict{asks, by.Rule}
	}
	return verdict{runs, by.Rule}
}

// eachGone calls each for every selected call whose run was deleted. Only the audit has such calls: those with an
// effect, without arguments and without the name of the agent. A selection of one agent has no such calls.
func eachGone(ctx context.Context, st store.Store, sel selection, each func()) error {
	if sel.agent != "" {
		return nil
	}
	chain, gone, counted := "", false, map[string]bool{} // counted are the calls of the chain
	for d, err := range document.All(ctx, st, document.AllAudit(pageSize)) {
		if err != nil {
			return err
		}
		e, err := audit.Decode(d.Data)
		if err != nil || e.ActionID == "" || counted[e.ActionID] || !sel.within(e.At) ||
			sel.tool != "" && sel.tool != e.Tool || sel.user != "" && sel.user != e.UID {
			continue // verify reports entries that cannot be read
		}
		if e.RunID != chain {
			chain = e.RunID
			clear(counted)
			if gone, err = absent(ctx, st, chain); err != nil {
				return err
			}
		}
		if counted[e.ActionID] = true; gone {
			each()
		}
	}
	return nil
}

// absent reports whether the run does not exist.
func absent(ctx context.Context, st store.Store, runID string) (bool, error) {
	if !run.ValidID(runID) {
		return true, nil
	}
	docs, err := st.Get(ctx, document.RunPath(runID))
	return err == nil && !docs[0].Exists(), err
}
