package run

import (
	"slices"

	"github.com/countersign-run/countersign/shared/fault"
)

// InTurn reports whether the call with the index in the newest turn may be asked about or carried out, as far as the
// order of the agent's calls goes. In strict order a call's turn comes when all calls before it were done, so that
// nobody decides on a call whose premise may still fail.
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

// MayBegin reports whether the call with the index in the newest turn may be carried out, as far as the order of the
// agent's calls goes: its turn has come, and where calls are carried out one after the other, each before it has its
// outcome.
func (t Terms) MayBegin(s *State, index int) bool {
	current := s.Current()
	open := func(a *Action) bool { return !a.Terminal() }
	if t.Sequential && slices.ContainsFunc(current[:min(index, len(current))], open) {
		return false
	}
	return t.InTurn(s, index)
}

// NotRun returns the calls of the newest turn that will not be carried out because one before them was not done, and
// why: that is the answer to them. One that was begun before the agent's order was strict keeps its own outcome.
func (t Terms) NotRun(s *State) (rest []*Action, why *fault.Error) {
	if !t.Strict {
		return nil, nil
	}
	for i, a := range s.Current() {
		switch {
		case !a.Terminal():
			return nil, nil // what became of it decides
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

// notBegun reports whether the call was not started, and none but its user, its client or its turn is waited for.
func (a *Action) notBegun() bool {
	return a.Runnable() || a.Unasked() || a.Waiting() && a.Kind != KindReview
}

// codeNotRun is the code of a call that was not carried out because one before it in a strict turn was not done.
const codeNotRun fault.Code = "not_run"

// notRunError returns the answer to the calls that come after one that was not done.
func notRunError(a *Action) *fault.Error {
	how := "failed"
	switch {
	case a.Status == ActionRejected && a.Decision == Undo:
		how = "was taken back"
	case a.Status == ActionRejected:
		how = "was rejected"
	case a.Error != nil && a.Error.Code == fault.CodeExpired:
		how = "expired"
	}
	return fault.New(fault.Policy, codeNotRun, "This was not run, because an earlier step, %s, %s.", a.Tool, how)
}
