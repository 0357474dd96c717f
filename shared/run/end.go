package run

import (
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/plan"
	"github.com/countersign-run/countersign/shared/tool"
)

// MaxAttempts is how often a step is started. A process that dies in one (it panics, it needs more memory than there
// is, the platform ends it) leaves a lease that lapses; the process that takes the run up counts that in the lease,
// durably, before it tries. A step that makes any progress starts a new count.
const MaxAttempts = 5

// codeAttempts is the code of a step that was given up.
const codeAttempts fault.Code = "too_many_attempts"

// ErrAttempts is the error of a step that was started [MaxAttempts] times and never finished.
var ErrAttempts = fault.New(fault.Tool, codeAttempts,
	"The server failed %d times while doing this, so it was given up.", MaxAttempts)

// Ending returns how a run must end that may not go on, or nil. Where the calls of a turn are independent, what was
// allowed is carried out and what is open stays open, whatever became of the others; in strict order, what comes after
// a call that was not done is not run ([Terms.NotRun]). The run ends when nothing is left.
func (t Terms) Ending(s *State, r Run, now time.Time) *End {
	singleCall := s.Input.SingleCall && len(s.Turns) > 0
	switch {
	case s.Cancelled:
		return FailedEnd(fault.New(fault.Policy, CodeCancelled, "This was cancelled."))
	case !now.Before(r.Deadline) && !t.Known:
		return FailedEnd(fault.New(fault.Policy, fault.CodeAgentGone,
			"The agent %q is no longer available, so this was ended when its time was over.", r.AgentName()))
	case !now.Before(r.Deadline):
		return FailedEnd(fault.New(fault.Policy, codeDeadline, "The time for this was over, so it was ended."))
	case s.Plan != nil && s.Plan.Unreadable:
		return FailedEnd(plan.ErrUnreadable)
	case !AllTerminal(s):
		return nil
	case failedWith(s, fault.CodeExpired) && s.Plan == nil: // where the model is told
		return FailedEnd(ErrExpired)
	case s.Plan == nil && failedWith(s, codeAttempts): // a session observes it, and goes on
		return FailedEnd(ErrAttempts)
	case failedWith(s, CodeRunBudget):
		return OverrunEnd(t.effectsOverrun(s))
	case !t.Known && (rejected(s) || !singleCall): // whether it goes on depends on its agent
		return nil
	case s.Plan != nil:
		return t.planEnding(s)
	case rejected(s) && !t.RejectContinues:
		return rejectedEnd(t.Tools, s, t.RejectFails)
	case singleCall:
		return singleCallEnd(t.Tools, s)
	case finalCall(s) != nil:
		return finalEnd(t.Tools, s)
	case len(s.Turns) >= t.ModelCalls:
		return outOfCallsEnd(t.Tools, s)
	}
	return nil
}

// planEnding returns how a run that plans must end, all of whose calls have their answers, or nil.
func (t Terms) planEnding(s *State) *End {
	switch phase := s.Plan.Phase(); {
	case phase == plan.Done:
		return &End{Status: Completed, Summary: TaskSummary(s)}
	case phase == plan.Broken:
		return FailedEnd(fault.New(fault.Policy, "plan_failed", "%s", s.Plan.Why))
	case s.Plan.ModelCalls >= t.ModelCalls:
		return FailedEnd(fault.New(fault.Model, "too_many_calls",
			"The model was asked %d times, which is as often as it may be for one plan.", t.ModelCalls))
	case phase == plan.Planning && s.Plan.CallsLeft() == 0 && s.Plan.Stuck() == "":
		return FailedEnd(fault.New(fault.Model, "no_plan", "The model proposed no usable plan in %d answers.",
			plan.MaxPlanningCalls))
	}
	return nil
}

// LastCall reports whether the model is asked for the last time, be it for a revision of the plan, for a task or in the
// session. It may only propose the plan then, or reflect.
func (t Terms) LastCall(s *State) bool {
	return s.Plan.CallsLeft() <= 1 || s.Plan.ModelCalls+1 >= t.ModelCalls
}

// ErrExpired is the error of a call whose approval was not decided in time.
var ErrExpired = fault.New(fault.Policy, fault.CodeExpired, "The approval expired, so this was not done.")

// Expired returns the calls that were neither decided nor answered in time.
func Expired(s *State, now time.Time) (out []*Action) {
	for _, a := range s.Current() {
		if a.Waiting() && a.Kind != KindReview && !now.Before(a.ExpiresAt) {
			out = append(out, a)
		}
	}
	return out
}

func rejected(s *State) bool {
	return slices.ContainsFunc(s.Current(), func(a *Action) bool { return a.Status == ActionRejected })
}

// failedWith reports whether a call of the newest turn failed with the code.
func failedWith(s *State, code fault.Code) bool {
	return slices.ContainsFunc(s.Current(),
		func(a *Action) bool { return a.Error != nil && a.Error.Code == code })
}

// AllTerminal reports whether every call of the newest turn has its answer.
func AllTerminal(s *State) bool {
	for _, a := range s.Current() {
		if !a.Terminal() {
			return false
		}
	}
	return true
}

// FailedEnd returns the end of a run that failed for this reason.
func FailedEnd(f *fault.Error) *End {
	return &End{Status: Failed, Summary: f.Message, Error: ErrorInfoOf(f)}
}

// OverrunEnd returns the end of a run that has come to the limit.
func OverrunEnd(o *Overrun) *End {
	end := FailedEnd(o.Fault())
	end.Error.Overrun = o
	return end
}

// rejectedEnd returns the end of a run whose user rejected one or more of its calls, or took their approval back.
func rejectedEnd(tools tool.Set, s *State, fails bool) *End {
	no, part := "You rejected this, so it was not done.", "You rejected part of this."
	if !slices.ContainsFunc(s.Current(),
		func(a *Action) bool { return a.Status == ActionRejected && a.Decision != Undo }) {
		no, part = "You took your approval back, so it was not done.", "You took back your approval of part of this."
	}
	if doneSummary(tools, s) != "" {
		no = part
	}
	if fails {
		return FailedEnd(fault.New(fault.Policy, "rejected", "%s", no))
	}
	return &End{Status: Completed, Summary: no}
}

// outOfCallsEnd returns the end of a run that has called the model as often as it may, in the server's words and from
// the recorded events. A run whose last answer cannot be used completes by what it has done, unless that answer asked
// for more to be done.
func outOfCallsEnd(tools tool.Set, s *State) *End {
	if s.Input.Answer != nil {
		return FailedEnd(fault.New(fault.Model, CodeNoAnswer,
			"The assistant gave no answer of the form that was asked for."))
	}
	for _, a := range s.Current() {
		if a.Status != ActionCompleted {
			return FailedEnd(fault.New(fault.Model, "too_many_calls",
				"The assistant reached its step limit before it could finish."))
		}
	}
	asksForMore := len(s.Turns) > 0 && s.Turns[len(s.Turns)-1].Finish == finishUnexpectedCall
	if len(s.Current()) == 0 && (asksForMore || EffectSummary(tools, s) == "") {
		return FailedEnd(fault.New(fault.Model, "too_many_calls", "The assistant gave no usable answer."))
	}
	return &End{Status: Completed, Summary: "Done."}
}

// finishUnexpectedCall is Gemini's finish reason of an answer that calls a function where it may call none.
const finishUnexpectedCall = "UNEXPECTED_TOOL_CALL"

// The codes of what was cancelled or ended before it was done.
const (
	CodeNoAnswer  fault.Code = "no_answer" // of the form that was asked for (Input.Answer)
	CodeCancelled fault.Code = "cancelled"
	codeDeadline  fault.Code = "deadline"
)

// singleCallEnd returns the end of a run of one call: what became of it.
func singleCallEnd(tools tool.Set, s *State) *End {
	switch a := s.Current()[0]; {
	case a.Status == ActionCompleted:
		return &End{Status: Completed, Summary: "Done."}
	case a.Status == ActionRejected:
		return rejectedEnd(tools, s, false)
	default:
		return &End{Status: Failed, Summary: a.Error.Message, Error: a.Error}
	}
}
