package plan

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/countersign-run/countersign/shared/base/fault"
)

// illegal returns the error for an event that is not permitted now.
func illegal(e Event, why string) error {
	return fmt.Errorf("plan: %s cannot follow: %s", e.Type(), why)
}

// Apply adds one event. If the event is not permitted, Apply returns an error and changes nothing.
func (s *Session) Apply(e Event) error {
	if s.Unreadable {
		return nil // later events depend on the unknown plan
	}
	if s.end != "" || s.broken {
		return illegal(e, "the session is over")
	}
	switch e.Type() {
	case TypeProposed:
		return s.propose(e)
	case TypeConfirmed:
		return s.confirm(e)
	case TypeClosed:
		return s.closed(e)
	case TypeChanged:
		return s.change(e)
	case TypeRevoked:
		return s.revoke(e)
	case TypeStarted, TypeReflected, TypeFinished:
		return s.task(e)
	}
	return fmt.Errorf("plan: an event must have one payload")
}

func (s *Session) propose(e Event) error {
	p := e.Proposed
	changing := s.Phase() == Acting || s.Phase() == Done
	switch {
	case s.Proposal != nil:
		return illegal(e, "another plan waits")
	case s.Current != nil:
		return illegal(e, "a task is in progress")
	case s.Phase() != Planning && !changing:
		return illegal(e, "no planning is in progress")
	case p.Hash == "" || p.ApprovalID == "":
		return illegal(e, "a proposal needs an approval and a hash")
	case s.Revision >= MaxRevisions && p.Hash != s.lastHash && !s.again: // earlier releases stored the same plan again
		return illegal(e, "the limit of "+strconv.Itoa(MaxRevisions)+" revisions is reached")
	}
	plan, err := Decode(p.Plan)
	if err != nil {
		s.Unreadable, s.broken, s.Why = true, true, ErrUnreadable.Message
		return nil
	}
	s.Proposal = &Proposal{Proposed: *p, Plan: plan}
	if changing {
		s.cause = changes
	}
	if !s.again { // a replacement card keeps the revision
		s.Revision = min(s.Revision+1, MaxRevisions)
	}
	s.again, s.Cards = false, append(s.Cards, Card{ApprovalID: p.ApprovalID, Hash: p.Hash})
	s.before, s.lastHash, s.last = s.last, p.Hash, &s.Proposal.Plan
	note(s, plan)
	return nil
}

// note makes sure that new IDs differ from those of the plan.
func note(s *Session, p Plan) {
	for _, t := range p.Tasks {
		s.nextID = max(s.nextID, number(t.ID)+1)
	}
	for _, g := range p.Grants {
		s.nextID = max(s.nextID, number(g.ID)+1)
	}
}

// number returns the number in an ID such as t3, or 0.
func number(id string) int {
	if len(id) < 2 {
		return 0
	}
	n, err := strconv.Atoi(id[1:])
	if err != nil {
		return 0
	}
	return n
}

func (s *Session) confirm(e Event) error {
	c, p := e.Confirmed, s.Proposal
	switch {
	case p == nil || c.ApprovalID != p.ApprovalID:
		return illegal(e, "this plan does not wait")
	case c.Plan == nil && c.Hash != p.Hash:
		return illegal(e, "another plan waits")
	case c.Hash == "":
		return illegal(e, "a confirmation needs a hash")
	}
	plan := p.Plan
	if c.Plan != nil {
		edited, err := Decode(c.Plan)
		if err != nil {
			return illegal(e, "the edited plan is unreadable")
		}
		plan = edited
	}
	if finished(s, plan) {
		return illegal(e, "it leaves nothing to do")
	}
	for _, t := range s.Tasks {
		if was := plan.Task(t.ID); t.Status == TaskCompleted && (was == nil || !was.same(t.Task)) {
			return illegal(e, "a completed task cannot change")
		}
	}
	card := &s.Cards[len(s.Cards)-1]
	card.Became, card.Confirmed = TypeConfirmed, c.Hash
	s.Confirmed = &Confirmation{Revision: s.Revision, ActionID: p.ActionID, ApprovalID: c.ApprovalID, Hash: c.Hash,
		Plan: plan, Edited: c.Plan != nil, Strict: c.Strict, Place: p.Place}
	s.Proposal, s.cause, s.calls, s.added = nil, first, 0, 0
	s.last, s.lastHash = &plan, c.Hash
	clear(s.revoked)
	note(s, plan)
	stand(s, plan)
	return nil
}

// stand makes plan the current plan. Its tasks are open unless they are completed. Tasks that are not in the plan
// become obsolete.
func stand(s *Session, plan Plan) {
	s.Plan = &plan
	old := s.Tasks
	s.Tasks = nil
	for _, t := range old {
		if plan.Task(t.ID) == nil {
			t.Status = TaskObsolete
			s.Tasks = append(s.Tasks, t)
		}
	}
	for _, t := range plan.Tasks {
		i := slices.IndexFunc(old, func(was *TaskState) bool { return was.ID == t.ID })
		switch {
		case i < 0:
			s.Tasks = append(s.Tasks, &TaskState{Task: t, Status: TaskPending})
			continue
		case old[i].Status != TaskCompleted:
			old[i].Task, old[i].Status, old[i].Error = t, TaskPending, ""
		}
		s.Tasks = append(s.Tasks, old[i])
	}
}

func (s *Session) closed(e Event) error {
	c := e.Closed
	if c.How == GivenUp {
		return giveUpChanges(s, e)
	}
	if s.Proposal == nil || c.ApprovalID != s.Proposal.ApprovalID {
		return illegal(e, "this plan does not wait")
	}
	switch c.How {
	case Refined:
		s.Words = append(s.Words, c.Words)
	case Replaced: // the same plan is shown again, compared with the same earlier plan
		s.last, s.again = s.before, true
	case Rejected, Expired:
		if s.cause == changes {
			s.cause = first // the confirmed plan continues
			break
		}
		s.broken, s.Why = true, whyClosed[c.How]
	default:
		return illegal(e, "unknown reason for closing a plan")
	}
	s.Cards[len(s.Cards)-1].Became = string(c.How)
	s.Proposal, s.calls = nil, 0
	return nil
}

func giveUpChanges(s *Session, e Event) error {
	if s.Phase() != Planning || s.cause != changes {
		return illegal(e, "no planning of changes is in progress")
	}
	s.cause, s.calls = first, 0
	return nil
}

var whyClosed = map[How]string{Rejected: "The plan was rejected.", Expired: "The plan was not confirmed in time."}

func (s *Session) change(e Event) error {
	if s.Phase() != Acting && s.Phase() != Done || s.Current != nil {
		return illegal(e, "a plan can change only between tasks")
	}
	plan, err := Apply(*s.Plan, e.Changed.Changes)
	if err != nil {
		return illegal(e, err.Error())
	}
	for _, t := range s.Tasks {
		now := plan.Task(t.ID)
		if t.Status == TaskCompleted && (now == nil || !now.same(t.Task)) {
			return illegal(e, "only open tasks can change")
		}
	}
	for _, t := range plan.Tasks {
		if was := s.Task(t.ID); was != nil && was.Status == TaskObsolete {
			return illegal(e, "the ID of a dropped task cannot be used again")
		}
	}
	if finished(s, plan) && !slices.ContainsFunc(s.Tasks, (*TaskState).done) {
		return illegal(e, "no task would be left")
	}
	for _, c := range e.Changed.Changes {
		if c.Op == Add {
			s.added++
		}
	}
	note(s, plan)
	stand(s, plan)
	s.last, s.lastHash = s.Plan, "" // no card shows these bytes
	s.Changes = append(s.Changes, *e.Changed)
	return nil
}

// finished reports whether every task of the plan is done.
func finished(s *Session, p Plan) bool {
	return !slices.ContainsFunc(p.Tasks, func(t Task) bool {
		was := s.Task(t.ID)
		return was == nil || !was.done()
	})
}

func (s *Session) revoke(e Event) error {
	id := e.Revoked.GrantID
	if s.Confirmed == nil || s.revoked[id] ||
		!slices.ContainsFunc(s.Confirmed.Plan.Grants, func(g Grant) bool { return g.ID == id }) {
		return illegal(e, "unknown or revoked grant")
	}
	s.revoked[id] = true
	return nil
}

// task applies an event of one task.
func (s *Session) task(e Event) error {
	if s.Phase() != Acting {
		return illegal(e, "no plan is executing")
	}
	if e.Started != nil {
		next := s.NextPending()
		if s.Current != nil || next.ID != e.Started.TaskID {
			return illegal(e, "tasks start in order, one at a time")
		}
		s.Current, next.Status, next.Steps, next.Refused = next, TaskExecuting, 0, false
		next.begun = len(next.Acts)
		return nil
	}
	t := s.Current
	if r := e.Reflected; r != nil {
		if t == nil || r.TaskID != t.ID {
			return illegal(e, "another task is in progress")
		}
		t.Refused = t.Refused || r.Refused != ""
		return nil
	}
	f := e.Finished
	switch {
	case t == nil || f.TaskID != t.ID:
		return illegal(e, "another task is in progress")
	case f.Status != TaskCompleted && f.Status != TaskFailed:
		return illegal(e, "a task ends COMPLETED or FAILED")
	case f.Status == TaskCompleted && len(t.missing(nil)) > 0: // earlier releases accepted the checks of any branch
		return illegal(e, "its effects are not on record")
	}
	t.Status, t.Result, t.Error = f.Status, f.Result, f.Error
	s.Current = nil
	if f.Status == TaskFailed {
		replan(s)
	}
	return nil
}

// replan begins a new planning after a failed task, unless the limit is reached.
func replan(s *Session) {
	if s.Replans == MaxReplans || s.Revision >= MaxRevisions {
		s.broken, s.Why = true, "A task failed, and no more plans are allowed."
		return
	}
	s.Replans, s.cause, s.calls = s.Replans+1, failed, 0
}

// End ends the session when its run ends. code is the code of the run's error. A run can end as completed only if every
// task is completed or obsolete.
func (s *Session) End(completed bool, code fault.Code) error {
	switch {
	case s.end != "":
		return fmt.Errorf("plan: the session has ended")
	case completed && s.Phase() != Done:
		return fmt.Errorf("plan: a session in the phase %s cannot end as completed", s.Phase())
	case completed:
		s.end = StatusCompleted
	case code == CodeDeadline:
		s.end = StatusDeadline
	default:
		s.end = StatusFailed
	}
	s.Proposal = nil
	return nil
}
