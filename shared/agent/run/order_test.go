package run_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/countersign-run/countersign/shared/agent/run"
)

// played is a turn whose calls start in the order of Next, with random results.
type played struct {
	*rapid.T
	state *run.State
	terms run.Terms
	begun []int // indexes of the calls that ran, in order
}

// TestStrictOrder plays turns of a strict agent. Calls get their approvals and run in the model's order, each after the
// calls before it were done. After a call that was not done, no further call starts, and the rest is closed as not run.
func TestStrictOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := newPlayed(rt, run.Terms{Strict: true})
		for range 100 {
			st, a := p.terms.Next(p.state, run.Run{Deadline: time.Unix(1<<40, 0)}, time.Unix(0, 0))
			if st == run.StepCallModel || st == run.StepEnd {
				p.checkEnded()
				return
			}
			if a != nil && st != run.StepSettle {
				p.checkBefore(a)
			}
			p.make(st, a)
		}
		rt.Fatal("the turn did not end")
	})
}

// TestSequentialOrder plays turns of a sequential agent. Approvals for all calls are requested at once, and each call
// runs when the calls before it have outcomes. No call is closed without a request.
func TestSequentialOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := newPlayed(rt, run.Terms{Sequential: true})
		for range 100 {
			st, a := p.terms.Next(p.state, run.Run{Deadline: time.Unix(1<<40, 0)}, time.Unix(0, 0))
			switch st {
			case run.StepCallModel, run.StepEnd:
				if !slices.IsSorted(p.begun) || slices.ContainsFunc(p.state.Actions, notRun) {
					rt.Fatalf("calls ran in the order %v", p.begun)
				}
				return
			case run.StepExecute:
				for _, b := range p.state.Actions[:a.Index] {
					if !b.Terminal() {
						rt.Fatalf("action %d started while action %d is %s", a.Index, b.Index, b.Status)
					}
				}
			}
			p.make(st, a)
		}
		rt.Fatal("the turn did not end")
	})
}

func notRun(a *run.Action) bool { return a.Error != nil && a.Error.Code == "not_run" }

// TestIndependentOrder checks that the calls of other agents start independently of the results of earlier calls, and
// that none is closed.
func TestIndependentOrder(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		p := newPlayed(rt, run.Terms{})
		for _, a := range p.state.Actions {
			if !p.terms.InTurn(p.state, a.Index) {
				rt.Fatalf("action %d waits for an earlier one", a.Index)
			}
		}
		if rest, _ := p.terms.NotRun(p.state); rest != nil {
			rt.Fatalf("%d calls were closed as not run", len(rest))
		}
	})
}

// newPlayed returns a turn of up to 16 calls. Each was allowed, needs an approval, or failed at once.
func newPlayed(t *rapid.T, terms run.Terms) *played {
	terms.Known, terms.Here, terms.ModelCalls, terms.RejectContinues = true, true, 3, true
	p := &played{T: t, terms: terms, state: &run.State{Status: run.Planning, Turns: make([]run.Turn, 1)}}
	for i := range rapid.IntRange(1, 16).Draw(t, "calls") {
		a := &run.Action{ID: fmt.Sprint(i), Status: run.ActionPlanned, Execution: run.NotStarted,
			ProposedCall: run.ProposedCall{Turn: 1, Index: i, Tool: "t"}}
		switch rapid.SampledFrom([]string{"allowed", "asks", "asks", "asks", "wrong"}).Draw(t, "call") {
		case "asks":
			a.RequiresApproval = true
		case "wrong":
			a.Status, a.Error = run.ActionFailed, &run.ErrorInfo{Code: "invalid"}
		}
		p.state.Actions = append(p.state.Actions, a)
	}
	return p
}

// make performs the step with a random result.
func (p *played) make(st run.Step, a *run.Action) {
	draw := func(from ...string) string { return rapid.SampledFrom(from).Draw(p.T, "how") }
	switch st {
	case run.StepSkip:
		rest, why := p.terms.NotRun(p.state)
		for _, a := range rest {
			a.Status, a.Error = run.ActionFailed, run.ErrorInfoOf(why)
		}
	case run.StepRequest:
		a.Status, a.Kind, a.ExpiresAt = run.ActionAwaiting, run.KindApproval, time.Unix(1<<41, 0)
	case run.StepExecute:
		p.begun = append(p.begun, a.Index)
		a.Status = run.ActionExecuting
	case run.StepSettle:
		switch draw("done", "done", "done", "failed", "unknown") {
		case "done":
			a.Status = run.ActionCompleted
		case "failed":
			a.Status, a.Error = run.ActionFailed, &run.ErrorInfo{Code: "refused"}
		case "unknown":
			a.Status, a.Execution, a.Kind, a.Decision = run.ActionFailed, run.UnknownState, run.KindReview, ""
		}
	case run.StepWait:
		open := p.state.Open()
		if len(open) == 0 || len(open) > 1 && p.terms.Strict {
			p.Fatalf("%d calls wait at the end", len(open))
		}
		switch a := rapid.SampledFrom(open).Draw(p.T, "decided"); {
		case a.Kind == run.KindReview:
			a.Status, a.Decision = run.ActionCompleted, run.ConfirmDone
		case draw("yes", "yes", "yes", "no") == "yes":
			a.Decision = run.ApproveOnce
		default:
			a.Status, a.Decision = run.ActionRejected, run.Reject
		}
	default:
		p.Fatalf("step %d", st)
	}
}

// checkBefore checks that all calls before the one that starts were done.
func (p *played) checkBefore(a *run.Action) {
	for _, b := range p.state.Actions[:a.Index] {
		if b.Status != run.ActionCompleted {
			p.Fatalf("action %d started while action %d is %s", a.Index, b.Index, b.Status)
		}
	}
}

// checkEnded checks the turn after its last step.
func (p *played) checkEnded() {
	if !slices.IsSorted(p.begun) {
		p.Fatalf("calls ran in the order %v", p.begun)
	}
	stopped := false
	for _, a := range p.state.Actions {
		wrong := a.Error != nil && a.Error.Code == "invalid"
		if stopped != notRun(a) && !wrong {
			p.Fatalf("action %d is %s, %+v; an earlier call was not done: %t", a.Index, a.Status, a.Error, stopped)
		}
		stopped = stopped || a.Status != run.ActionCompleted
	}
}
