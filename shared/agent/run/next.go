package run

import (
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
)

// Step is the next thing that a run needs.
type Step int

const (
	StepDone       Step = iota // the run has ended
	StepWait                   // a user or a client must answer, an undo window is open, or a call is postponed
	StepEnd                    // the run must end; no other call starts
	StepSettle                 // an action started and has no outcome
	StepExpire                 // an approval or an answer is overdue
	StepSkip                   // calls must be closed: an earlier one was not done, or the budget is used up
	StepRequest                // the user must be asked about a call
	StepExecute                // a call can start
	StepCallModel              // the model must be called
	StepGiveUpTask             // a run with a plan must give up its task or planning (plan.Session.Stuck)
	StepCleanUp                // the run has ended, and what its calls created must be removed
	StepLookUp                 // after a restore: a call may have been executed without a record of it
	StepElsewhere              // a process that knows the agent, or the function that serves it, must continue
)

// Terms are the settings of a run's agent, as far as this process knows them.
type Terms struct {
	Known           bool // this process knows the agent
	Here            bool // this process advances the agent's runs
	Sequential      bool // calls of a turn run in the model's order, whatever their outcomes (MayBegin)
	Strict          bool // calls run only while those before them were done (InTurn, NotRun)
	ModelCalls      int  // the maximum number of model calls
	Budget          Budget
	RejectContinues bool // the model continues after a rejection; otherwise the run ends
	RejectFails     bool // the run ends as failed after a rejection, not as completed
	Tools           tool.Set
}

// Next returns what the run needs next from this process, and the action concerned, if any. It is a pure function of
// the run, the time and the terms. Most steps need the run's agent; expiring a call and ending the run do not.
func (t Terms) Next(s *State, r Run, now time.Time) (Step, *Action) {
	st, a := t.needs(s, r, now)
	moves := st == StepSettle || st == StepRequest || st == StepExecute || st == StepCallModel ||
		st == StepGiveUpTask || st == StepCleanUp || st == StepLookUp
	switch {
	case !moves || t.Here:
		return st, a
	// The run is about to end, so this process asks the tool for the action's outcome.
	case (st == StepSettle || st == StepLookUp) && !now.Before(r.Deadline):
		return st, a
	case len(Expired(s, now)) > 0:
		return StepExpire, nil
	}
	return StepElsewhere, nil
}

// needs returns what the run needs next, whichever process provides it.
func (t Terms) needs(s *State, r Run, now time.Time) (Step, *Action) {
	switch {
	case NeedsDisposal(s):
		return StepCleanUp, nil
	case s.End != nil:
		return StepDone, nil
	}
	for _, a := range s.Actions {
		if a.Status == ActionExecuting {
			return StepSettle, a
		}
	}
	if a := r.ToLookUp(s); a != nil {
		return StepLookUp, a
	}
	if t.Ending(s, r, now) != nil {
		return StepEnd, nil
	}
	if rest, _ := t.Unaffordable(s); len(rest) > 0 {
		return StepSkip, nil
	}
	if rest, _ := t.NotRun(s); len(rest) > 0 {
		return StepSkip, nil
	}
	if st, a := t.nextCall(s, now); a != nil {
		return st, a
	}
	if len(Expired(s, now)) > 0 {
		return StepExpire, nil
	}
	if len(s.Open()) > 0 || !HeldUntil(s, now).IsZero() || !PostponedUntil(s, now).IsZero() {
		return StepWait, nil
	}
	if s.Plan != nil && s.Plan.Stuck() != "" {
		return StepGiveUpTask, nil
	}
	return StepCallModel, nil
}

// nextCall returns the first call of the turn that needs an approval or may begin now, or no action.
func (t Terms) nextCall(s *State, now time.Time) (Step, *Action) {
	for _, a := range s.Current() {
		switch {
		case !t.InTurn(s, a.Index) || a.Held(now) || a.Postponed(now):
		case a.Unasked():
			return StepRequest, a
		case a.Runnable() && t.MayBegin(s, a.Index):
			return StepExecute, a
		}
	}
	return 0, nil
}
