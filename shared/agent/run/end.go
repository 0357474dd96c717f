package run

import (
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// MaxAttempts is the number of times that one step is started. If a process dies during a step, because of a panic, a
// lack of memory or the platform, its lease lapses. The next process stores the new count in the lease before it
// retries the step. A step that makes progress resets the count.
const MaxAttempts = 5

// codeAttempts is the error code of a step that failed too often.
const codeAttempts fault.Code = "too_many_attempts"

// ErrAttempts is the error of a step that was started [MaxAttempts] times and never finished.
var ErrAttempts = fault.New(fault.Tool, codeAttempts,
	"The server failed %d times while doing this, so it was given up.", MaxAttempts)

// Ending returns how the run must end, or nil if it may continue. In an agent whose calls are independent, allowed
// calls run and open ones stay open, whatever the other calls return. In strict order, the calls after one that was not
// done are not run ([Terms.NotRun]). The run ends when no call is left.
func (t Terms) Ending(s *State, r Run, now time.Time) *End {
	if end := t.stopped(s, r, now); end != nil || !AllTerminal(s) {
		return end
	}
	singleCall := s.Input.SingleCall && len(s.Turns) > 0
	switch {
	case failedWith(s, fault.CodeExpired) && s.Plan == nil: // the model of a run with a plan reads the error
		return FailedEnd(ErrExpired)
	case s.Plan == nil && failedWith(s, codeAttempts): // the model of a run with a plan reads the error and continues
		return FailedEnd(ErrAttempts)
	case failedWith(s, CodeRunBudget):
		return OverrunEnd(t.effectsOverrun(s))
	case !t.Known && (rejected(s) || !singleCall): // the agent decides whether the run continues
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

// stopped returns how a run ends that must stop now, whatever its calls do: it was cancelled, is past its deadline, or
// has a plan that cannot be read.
func (t Terms) stopped(s *State, r Run, now time.Time) *End {
	switch {
	case s.Cancelled:
		return FailedEnd(fault.New(fault.Policy, CodeCancelled, "This was cancelled."))
	case !now.Before(r.Deadline) && !t.Known:
		return FailedEnd(fault.New(fault.Policy, fault.CodeAgentGone,
			"The agent %q is no longer available, so this was stopped at its deadline.", r.AgentName()))
	case !now.Before(r.Deadline):
		return FailedEnd(fault.New(fault.Policy, codeDeadline, "This reached its deadline, so it was stopped."))
	case s.Plan != nil && s.Plan.Unreadable:
		return FailedEnd(plan.ErrUnreadable)
	}
	return nil
}

// planEnding returns how a run with a plan must end, or nil. All its calls must have answers.
func (t Terms) planEnding(s *State) *End {
	switch phase := s.Plan.Phase(); {
	case phase == plan.Done:
		return &End{Status: Completed, Summary: TaskSummary(s)}
	case phase == plan.Broken:
		return FailedEnd(fault.New(fault.Policy, "plan_failed", "%s", s.Plan.Why))
	case s.Plan.ModelCalls >= t.ModelCalls:
		return FailedEnd(fault.New(fault.Model, "too_many_calls",
			"The model was called %d times, which is the limit for one plan.", t.ModelCalls))
	case phase == plan.Planning && s.Plan.CallsLeft() == 0 && s.Plan.Stuck() == "":
		return FailedEnd(fault.New(fault.Model, "no_plan", "The model proposed no usable plan in %d answers.",
			plan.MaxPlanningCalls))
	}
	return nil
}

// LastCall reports whether the next model call is the last one for the current revision, task or session. In that call
// the model can only propose the plan or reflect.
func (t Terms) LastCall(s *State) bool {
	return s.Plan.CallsLeft() <= 1 || s.Plan.ModelCalls+1 >= t.ModelCalls
}

// ErrExpired is the error of a call whose approval expired without a decision.
var ErrExpired = fault.New(fault.Policy, fault.CodeExpired, "The approval expired, so this was not done.")

// Expired returns the calls whose approval or client answer is overdue at now.
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

// FailedEnd returns the end of a run that failed with this error.
func FailedEnd(f *fault.Error) *End {
	return &End{Status: Failed, Summary: f.Message, Error: ErrorInfoOf(f)}
}

// OverrunEnd returns the end of a run that has reached a budget limit.
func OverrunEnd(o *Overrun) *End {
	end := FailedEnd(o.Fault())
	end.Error.Overrun = o
	return end
}

// rejectedEnd returns the end of a run whose user rejected at least one of its calls, or revoked the approval of one.
func rejectedEnd(tools tool.Set, s *State, fails bool) *End {
	no, part := "You rejected this, so it was not done.", "You rejected part of this."
	if !slices.ContainsFunc(s.Current(),
		func(a *Action) bool { return a.Status == ActionRejected && a.Decision != Undo }) {
		no, part = "You took your approval back, so it was not done.", "You took back your approval of part of this."
	}
	if !slices.ContainsFunc(s.Current(), func(a *Action) bool {
		return a.Status == ActionRejected && a.Decision != TakeBack
	}) {
		no, part = "You took this back, so it was not done.", "You took part of this back."
	}
	if doneSummary(tools, s) != "" {
		no = part
	}
	if fails {
		return FailedEnd(fault.New(fault.Policy, "rejected", "%s", no))
	}
	return &End{Status: Completed, Summary: no}
}

// outOfCallsEnd returns the end of a run that has used all its model calls. The text is the server's and comes from the
// recorded events. If the last answer is unusable, the run completes with the effects done so far, unless that answer
// asked for more.
func outOfCallsEnd(tools tool.Set, s *State) *End {
	if s.Input.Answer != nil {
		return FailedEnd(fault.New(fault.Model, CodeNoAnswer,
			"The assistant gave no answer in the requested form."))
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

// HadEffect reports whether the run has had an effect and needs no further answer: neither one in a requested form, nor
// the rest of a plan.
func HadEffect(s *State) bool {
	return s.Input.Answer == nil && s.Plan == nil && slices.ContainsFunc(s.Actions,
		func(a *Action) bool { return a.SideEffect && a.Status == ActionCompleted })
}

// unanswered begins the summary of a run whose model failed after its effects. No answer of a model may say it.
const unanswered = "The model gave no closing answer"

// UnansweredEnd returns the end of a run whose model failed after the run's effects ([HadEffect]).
func UnansweredEnd(f *fault.Error) *End {
	why, _, _ := strings.Cut(strings.TrimSuffix(f.Message, "."), ". ")
	return &End{Status: Completed, Summary: unanswered + ": " + why + "."}
}

// finishUnexpectedCall is Gemini's finish reason for an answer that calls a function although calls were disabled.
const finishUnexpectedCall = "UNEXPECTED_TOOL_CALL"

// Error codes of runs and calls that were cancelled or ended early.
const (
	CodeNoAnswer  fault.Code = "no_answer" // no answer in the requested form (Input.Answer)
	CodeCancelled fault.Code = "cancelled"
	codeDeadline  fault.Code = "deadline"
)

// singleCallEnd returns the end of a run that consists of one call: the outcome of that call.
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
