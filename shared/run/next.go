package run

import (
	"time"

	"github.com/countersign-run/countersign/shared/tool"
)

// Step is what a run needs next.
type Step int

const (
	StepDone       Step = iota // it has ended
	StepWait                   // a user or a client must answer, or a yes is held
	StepEnd                    // it must be ended, and nothing else is carried out
	StepSettle                 // an effect was started and has no outcome
	StepExpire                 // an approval or an answer came too late, and others are left
	StepSkip                   // calls are not carried out: one before them was not done, or the budget is used up
	StepRequest                // its user must be asked about a call whose turn has come
	StepExecute                // a call may be carried out
	StepCallModel              // the model must be called
	StepGiveUpTask             // a run that plans has to give something up (plan.Session.Stuck)
	StepCleanUp                // it has ended, and what its calls have left must be removed
	StepElsewhere              // it must be moved by a process that knows its agent, or by the function that serves it
)

// Terms are what a run's agent has set, as far as this process knows it.
type Terms struct {
	Known           bool // the agent is in this process's registry
	Here            bool // and this process moves its runs
	Sequential      bool // a turn's calls are carried out in the model's order, whatever becomes of them (MayBegin)
	Strict          bool // and only while those before them were done (InTurn, NotRun)
	ModelCalls      int  // how often the model may be called
	Budget          Budget
	RejectContinues bool // after a rejection the model is told and finishes; otherwise the run ends
	RejectFails     bool // as failed, and not as completed
	Tools           tool.Set
}

// Next returns what the run needs next of this process, and the action concerned, if any. It is a pure function of the
// run, the time and the terms. What moves a run needs its agent; expiring a call and ending the run do not.
func (t Terms) Next(s *State, r Run, now time.Time) (Step, *Action) {
	st, a := t.needs(s, r, now)
	moves := st == StepSettle || st == StepRequest || st == StepExecute || st == StepCallModel ||
		st == StepGiveUpTask || st == StepCleanUp
	switch {
	case !moves || t.Here:
		return st, a
	case st == StepSettle && !now.Before(r.Deadline): // the run is about to be ended, and whatever its tool says counts
		return st, a
	case len(Expired(s, now)) > 0:
		return StepExpire, nil
	}
	return StepElsewhere, nil
}

// needs returns what the run needs next, whoever does it.
func (t Terms) needs(s *State, r Run, now time.Time) (Step, *Action) {
	switch {
	case Unclean(s):
		return StepCleanUp, nil
	case s.End != nil:
		return StepDone, nil
	}
	for _, a := range s.Actions {
		if a.Status == ActionExecuting {
			return StepSettle, a
		}
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
	for _, a := range s.Current() {
		switch {
		case !t.InTurn(s, a.Index) || a.Held(now):
		case a.Unasked():
			return StepRequest, a
		case a.Runnable() && t.MayBegin(s, a.Index):
			return StepExecute, a
		}
	}
	if len(Expired(s, now)) > 0 {
		return StepExpire, nil
	}
	if len(s.Open()) > 0 || !HeldUntil(s, now).IsZero() {
		return StepWait, nil
	}
	if s.Plan != nil && s.Plan.Stuck() != "" {
		return StepGiveUpTask, nil
	}
	return StepCallModel, nil
}
