package run

import (
	"fmt"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// legalRun holds the transitions of seed 000 §3, and those for several waiting calls and for cancelled waits.
var legalRun = map[Status][]Status{
	"":        {Queued},
	Queued:    {Planning, Failed},
	Planning:  {Completed, Failed, Awaiting, Executing},
	Awaiting:  {Executing, Planning, Completed, Failed},
	Executing: {Planning, Awaiting, Completed, Failed},
}

// legalAction holds the transitions of seed 000 §3. A later owner may start an executing action again. Only the user's
// decision (Decided) completes a failed action with an unknown outcome. The client completes a waiting call of
// KindCall.
var legalAction = map[ActionStatus][]ActionStatus{
	ActionPlanned:   {ActionAwaiting, ActionExecuting, ActionCompleted, ActionFailed},
	ActionAwaiting:  {ActionExecuting, ActionRejected, ActionFailed, ActionCompleted},
	ActionExecuting: {ActionExecuting, ActionCompleted, ActionFailed},
	ActionFailed:    {ActionCompleted},
}

// Apply adds one event. If the state machine does not permit the event, Apply returns an error and changes nothing.
func (s *State) Apply(e Event) error {
	switch {
	case e.Type == RunCleaned && e.Cleaned != nil && NeedsDisposal(s):
		s.Cleaned = e.Cleaned
		return nil
	case s.End != nil:
		return illegal(e, "the run has ended")
	}
	if s.Status == "" && e.Type != RunQueued {
		return illegal(e, "the run has not started")
	}
	switch e.Type {
	case RunQueued:
		return s.queued(e)
	case RunStatusChange:
		return s.moved(e)
	case ModelAnswered:
		return s.answered(e)
	case ModelPostponed:
		return s.modelPostponed(e)
	case ActionProposed:
		return s.proposed(e)
	case ContextCompressed:
		return s.compressed(e)
	case CancelRequested:
		s.Cancelled = true
		return nil
	case RunEnded:
		return s.ended(e)
	case PlanProposed, PlanConfirmed, PlanClosed, PlanChanged, GrantRevoked, TaskStarted, TaskReflected, TaskFinished:
		return s.planned(e)
	}
	a := s.Action(e.ActionID)
	if a == nil {
		return illegal(e, "unknown action")
	}
	apply := a.apply
	if e.Type == ActionPostponed {
		apply = a.postpone
	}
	if err := apply(e); err != nil {
		return err
	}
	s.addFiles(e)
	s.recordAct(a)
	return nil
}

// addFiles adds the files of an action's event: those of its user, or those of its tool.
func (s *State) addFiles(e Event) {
	switch {
	case e.Decided != nil:
		s.Input.Files = slices.Concat(s.Input.Files, e.Decided.Files)
	case e.Finished != nil:
		s.Made = append(s.Made, e.Finished.Files...)
	}
}

func (s *State) queued(e Event) error {
	if s.Status != "" || e.Queued == nil {
		return illegal(e, "a run begins once, with its input")
	}
	s.Status, s.Input = Queued, *e.Queued
	if s.Input.Session != nil {
		s.Plan, s.began = plan.NewSession(), e.At
	}
	return nil
}

func (s *State) moved(e Event) error {
	if !permits(legalRun[s.Status], e.Status) || e.Status == Completed || e.Status == Failed {
		return illegal(e, fmt.Sprintf("status %s cannot change to %s", s.Status, e.Status))
	}
	s.Status = e.Status
	return nil
}

func (s *State) answered(e Event) error {
	for _, a := range s.Current() {
		if !a.Terminal() {
			return illegal(e, "a call of the previous turn has no answer yet")
		}
	}
	s.Turns, s.Waits = append(s.Turns, *e.Turn), Waits{}
	s.Usage = s.Usage.Add(e.Turn.Usage)
	s.Cost += e.Turn.Cost
	s.Made = append(s.Made, e.Turn.Files...)
	if s.Plan != nil && !e.Turn.OwnWork() {
		s.Plan.Answered()
	}
	if n := e.Turn.Tokens(); n > 0 {
		s.ModelCalls, s.Tokens = s.ModelCalls+1, s.Tokens+n
	}
	return nil
}

func (s *State) modelPostponed(e Event) error {
	if e.Postponed == nil {
		return illegal(e, "it has no time")
	}
	if s.Waits.Count == 0 {
		s.Waits.Since = e.At
	}
	s.Waits.Count, s.Waits.Until = s.Waits.Count+1, e.Postponed.Until
	return nil
}

func (s *State) proposed(e Event) error {
	p := e.Proposed
	if p == nil || p.Turn != len(s.Turns) || s.Action(e.ActionID) != nil {
		return illegal(e, "a call belongs to the newest turn and is proposed once")
	}
	a := &Action{ID: e.ActionID, ProposedCall: *p, Status: ActionPlanned, Execution: NotStarted, PlannedAt: e.At,
		UpdatedAt: e.At, seq: e.Seq, last: e.Seq}
	if s.byID == nil {
		s.byID = map[string]*Action{}
	}
	s.Actions, s.byID[a.ID] = append(s.Actions, a), a
	s.recordAct(a)
	return nil
}

func (s *State) ended(e Event) error {
	for _, a := range s.Actions {
		if a.Status == ActionExecuting {
			return illegal(e, "an effect is under way")
		}
	}
	if e.End == nil || !permits(legalRun[s.Status], e.End.Status) {
		return illegal(e, fmt.Sprintf("this end is not permitted while the status is %s", s.Status))
	}
	if s.Plan != nil {
		code := fault.Code("")
		if e.End.Error != nil {
			code = e.End.Error.Code
		}
		if err := s.Plan.End(e.End.Status == Completed, code); err != nil {
			return illegal(e, err.Error())
		}
	}
	s.Status, s.End = e.End.Status, e.End
	return nil
}

func (a *Action) apply(e Event) error {
	to, err := a.next(e)
	if err != nil {
		return err
	}
	if to != a.Status && !permits(legalAction[a.Status], to) {
		return illegal(e, fmt.Sprintf("the action is %s and cannot become %s", a.Status, to))
	}
	switch {
	case e.Wait != nil:
		a.wait(e.Wait, e.At)
	case e.Decided != nil:
		a.decide(e.Decided)
	case e.Started != nil:
		a.start(e.Started)
	case e.Finished != nil:
		a.Execution, a.Result, a.Error = e.Finished.Execution, e.Finished.Result, e.Finished.Error
		a.Truncated, a.Ran = e.Finished.Truncated, e.Finished.Ran
		a.Returned, a.ReturnedOf = e.Finished.Files, e.Finished.FilesOf
	}
	a.Status, a.UpdatedAt, a.last = to, e.At, e.Seq
	return nil
}

// postpone makes a reading call, or an approved one that has had no effect, begin again later. An approved call has
// started; it may begin again under the same approval.
func (a *Action) postpone(e Event) error {
	running := a.Status == ActionExecuting
	if e.Postponed == nil || a.SideEffect && a.Decision == "" || !a.Runnable() && !running {
		return illegal(e, "only a reading or an approved call that has no outcome can begin again later")
	}
	if running {
		a.Status, a.Execution = ActionAwaiting, NotStarted
	}
	a.NotBefore, a.WaitsFor, a.UpdatedAt, a.last = e.Postponed.Until, e.Postponed.For, e.At, e.Seq
	return nil
}

// next returns the status that follows from the event.
func (a *Action) next(e Event) (ActionStatus, error) {
	switch e.Type {
	case ActionWaits:
		if e.Wait.Kind == KindReview {
			if a.Execution != UnknownState || a.Waiting() {
				return "", illegal(e, "only an unknown outcome is reviewed, and only once")
			}
			return a.Status, nil
		}
		return ActionAwaiting, nil
	case ActionDecided:
		return a.decided(e)
	case ActionStarted:
		return a.started(e)
	case ActionFinished:
		return a.finished(e)
	}
	return "", illegal(e, "unknown event type")
}

func (a *Action) started(e Event) (ActionStatus, error) {
	if a.Status == ActionExecuting && e.Started.Attempt <= a.Started.Attempt {
		return "", illegal(e, "the attempt number must increase")
	}
	if e.Started.ArgsHash != "" && (a.Decision != "" || a.Status == ActionExecuting) {
		return "", illegal(e, "an approved or started call cannot move")
	}
	return ActionExecuting, nil
}

func (a *Action) finished(e Event) (ActionStatus, error) {
	if a.Status == ActionCompleted || a.Status == ActionRejected || a.Status == ActionFailed {
		return "", illegal(e, "the action already has an outcome")
	}
	confirmed := a.Kind == KindPlan && a.Decision != "" // a confirmed plan waits for nothing else
	if a.Status == ActionAwaiting && a.Kind != KindCall && !confirmed && e.Finished.Status == ActionCompleted {
		return "", illegal(e, "an action that waits for a decision cannot complete")
	}
	return e.Finished.Status, nil
}

func (a *Action) decided(e Event) (ActionStatus, error) {
	d := e.Decided
	if d.Decision == Undo {
		if d.ApprovalID != a.ApprovalID || !a.Held(e.At) {
			return "", illegal(e, "no approval is in its undo window")
		}
		return ActionRejected, nil
	}
	if !a.Waiting() || d.ApprovalID != a.ApprovalID {
		return "", illegal(e, "no action waits for this decision")
	}
	switch {
	case a.Kind == KindReview && d.Decision == ConfirmDone:
		return ActionCompleted, nil
	case a.Kind == KindReview && d.Decision == StartNew:
		return ActionFailed, nil
	case a.Kind == KindReview:
		return "", illegal(e, "a review permits only confirm_done and start_new")
	case d.Decision == Reject, d.Decision == TakeBack && a.Kind == KindApproval:
		return ActionRejected, nil
	case d.Decision == Refine && a.Kind == KindPlan:
		return ActionCompleted, nil // the user's comment is the answer to the call
	case d.Decision == ApproveOnce, d.Decision == ApproveAlways, d.Decision == ApproveAlwaysCommand,
		d.Decision == ApproveEdited:
		return ActionAwaiting, nil
	}
	return "", illegal(e, "an approval does not permit this decision")
}

func (a *Action) wait(w *Wait, at time.Time) {
	a.counted, a.countedAt = max(1, w.Effects), at
	a.ApprovalID, a.Kind, a.ExpiresAt, a.Decision, a.Proof = w.ApprovalID, w.Kind, w.ExpiresAt, "", nil
	a.Passkey = nil
	if w.ArgsHash != "" {
		a.Args, a.ArgsHash, a.Place, a.Warnings = w.Args, w.ArgsHash, w.Place, nil
	}
	if w.Ruled != nil {
		a.Ruled = w.Ruled
	}
}

func (a *Action) start(s *Started) {
	a.Started, a.Execution = *s, Intent
	if s.ArgsHash != "" {
		a.ArgsHash, a.Place = s.ArgsHash, s.Place
	}
}

func (a *Action) decide(d *Decided) {
	a.Decision, a.DecidedBy, a.Comment, a.HeldUntil = d.Decision, d.By, d.Comment, d.HeldUntil
	a.ReplacedBy, a.Proof, a.Passkey, a.Files = d.ReplacedBy, d.Proof, d.Passkey, d.Files
	if d.EditedArgs != nil {
		a.Args, a.Edited = d.EditedArgs, true
	}
	if d.Ruled != nil {
		a.Ruled = d.Ruled
	}
	if d.ArgsHash != "" {
		a.ArgsHash = d.ArgsHash
	}
	if d.Decision == ConfirmDone {
		a.Execution = Succeeded
	}
}

func permits[T comparable](edges []T, to T) bool {
	for _, e := range edges {
		if e == to {
			return true
		}
	}
	return false
}

// Fold applies events, oldest first, to a new State. It returns the error of the first event that is not permitted.
func Fold(events []Event) (*State, error) {
	s := &State{}
	for _, e := range events {
		if err := s.Apply(e); err != nil {
			return nil, err
		}
	}
	return s, nil
}
