package run

import (
	"slices"

	"github.com/countersign-run/countersign/shared/base/fault"
)

// InTurn reports whether the agent's order allows the call at index in the newest turn to be shown for approval or to
// run. In strict order, all calls before it must be done, so users never decide on a call whose premise may still fail.
func (t Terms) InTurn(s *State, index int) bool {
	if !t.Strict {
		return true
	}
	current := s.Current()
	for _, a := range current[:min(index, len(current))] {
		if a.Status != ActionCompleted {
			return false
		}
	}
	return true
}

// MayBegin reports whether the agent's order allows the call at index in the newest turn to run. InTurn must hold for
// the call. In sequential order, every call before it must also have an outcome.
func (t Terms) MayBegin(s *State, index int) bool {
	current := s.Current()
	open := func(a *Action) bool { return !a.Terminal() }
	if t.Sequential && slices.ContainsFunc(current[:min(index, len(current))], open) {
		return false
	}
	return t.InTurn(s, index)
}

// NotRun returns the calls of the newest turn that are not run because an earlier one was not done. why is the answer
// to these calls. A call that started before the agent's order became strict keeps its own outcome.
func (t Terms) NotRun(s *State) (rest []*Action, why *fault.Error) {
	if !t.Strict {
		return nil, nil
	}
	for i, a := range s.Current() {
		switch {
		case !a.Terminal():
			return nil, nil // its outcome decides
		case a.Status == ActionCompleted:
			continue
		}
		for _, b := range s.Current()[i+1:] {
			if b.notBegun() {
				rest = append(rest, b)
			}
		}
		return rest, notRunError(a)
	}
	return nil, nil
}

// notBegun reports whether the call has not started and waits only for its user, its client or its turn.
func (a *Action) notBegun() bool {
	return a.Runnable() || a.Unasked() || a.Waiting() && a.Kind != KindReview
}

// codeNotRun is the error code of a call that was not run because an earlier call of a strict turn was not done.
const codeNotRun fault.Code = "not_run"

// notRunError returns the answer to the calls after a, which was not done.
func notRunError(a *Action) *fault.Error {
	how := "failed"
	switch {
	case a.Status == ActionRejected && (a.Decision == Undo || a.Decision == TakeBack):
		how = "was taken back"
	case a.Status == ActionRejected:
		how = "was rejected"
	case a.Error != nil && a.Error.Code == fault.CodeExpired:
		how = "expired"
	}
	return fault.New(fault.Policy, codeNotRun, "This was not run, because an earlier step, %s, %s.", a.Tool, how)
}
