package invariants

import (
	"fmt"

	"github.com/countersign-run/countersign/shared/agent/run"
)

// Rules for one run at any moment. They need only its folded events. Readers of the store use them, and tests that
// watch each commit.

// OfAction compares an action's record with the number of its effects.
func OfAction(a *run.Action, effects int) (found []Violation) {
	violates := func(number int, format string, args ...any) {
		found = append(found, Violation{Number: number, Text: fmt.Sprintf(format, args...)})
	}
	if effects > 1 {
		violates(EffectBound, "action %s (%s) took place %d times", a.ID, a.Tool, effects)
	}
	byPerson := a.Decision == run.ConfirmDone
	switch {
	case !a.SideEffect:
	case a.Status == run.ActionCompleted && effects != 1 && !byPerson:
		violates(Truth, "action %s (%s) is completed, and took place %d times", a.ID, a.Tool, effects)
	// it may have taken place
	case a.Execution == run.Intent, a.Execution == run.UnknownState, a.WaitsForClient(), byPerson:
	case a.Execution == run.FailedKnown && a.Result != nil: // it was stopped, and returned a partial result
	case a.Status != run.ActionCompleted && effects > 0:
		violates(Truth, "action %s (%s) is %s (%s), and took place", a.ID, a.Tool, a.Status, a.Execution)
	}
	if a.PolicyDecision == "deny" && (effects > 0 || a.ApprovalID != "" || a.Started.Attempt > 0) {
		violates(DenyRules, "action %s was denied, and has an approval, an intent or an effect", a.ID)
	}
	return found
}

// OfState compares a run's status with its waiting actions.
func OfState(s *run.State) []Violation {
	if waits := len(s.Open()); s.End == nil && (s.Status == run.Awaiting) != (waits > 0) {
		return []Violation{{Number: AwaitingOpen, Text: fmt.Sprintf("it is %s, and %d actions wait", s.Status, waits)}}
	}
	return nil
}

// AtRest returns the actions that are unfinished after everything was delivered and swept. In strict order, and in
// sequence, an allowed call waits for an earlier call that waits.
func AtRest(s *run.State, order run.Terms) (found []Violation) {
	if s.End == nil && s.Status != run.Awaiting {
		found = append(found, Violation{Number: Liveness, Text: fmt.Sprintf("it is %s", s.Status)})
	}
	for _, a := range s.Actions {
		waits := a.Runnable() && a.Turn == len(s.Turns) && !order.MayBegin(s, a.Index)
		if a.Runnable() && !waits || a.Status == run.ActionExecuting || approves(a.Decision) &&
			!a.Terminal() && !a.Waiting() && !waits {
			found = append(found, Violation{Number: NoLostYes,
				Text: fmt.Sprintf("action %s (%q) is %s (%s)", a.ID, a.Decision, a.Status, a.Execution)})
		}
	}
	return found
}

// InSequence checks an event that starts a call against the earlier calls of its turn. It is for agents
// whose calls run one after the other. s is the state before the event.
func InSequence(s *run.State, e run.Event) []Violation {
	a := s.Action(e.ActionID)
	begins := e.Started != nil || e.Wait != nil && e.Wait.Kind == run.KindCall ||
		e.Finished != nil && e.Finished.Status == run.ActionCompleted
	if a == nil || !begins {
		return nil
	}
	for _, b := range s.Current() {
		if b.Index < a.Index && !b.Terminal() {
			return []Violation{{Number: Sequence,
				Text: fmt.Sprintf("%s of action %s, and action %s before it is %s", e.Type, a.ID, b.ID, b.Status)}}
		}
	}
	return nil
}

// InOrder checks an event that starts a call against the earlier calls of its turn. It is for agents with strict order.
// s is the state before the event.
func InOrder(s *run.State, e run.Event) []Violation {
	a := s.Action(e.ActionID)
	begins := e.Started != nil || e.Wait != nil && e.Wait.Kind != run.KindReview ||
		e.Finished != nil && e.Finished.Status == run.ActionCompleted
	if a == nil || !begins {
		return nil
	}
	for _, b := range s.Current() {
		if b.Index < a.Index && b.Status != run.ActionCompleted {
			return []Violation{{Number: StrictOrder,
				Text: fmt.Sprintf("%s of action %s, and action %s before it is %s", e.Type, a.ID, b.ID, b.Status)}}
		}
	}
	return nil
}
