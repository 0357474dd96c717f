package plan

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/visible"
)

// Limits of a reflection, in bytes.
const (
	MaxReflection = 4 << 10
	MaxResult     = 8 << 10
	maxChanges    = MaxTasks
)

// A Verdict is the consequence of a reflection.
type Verdict struct {
	Events   []Event // to record in this order, in one commit with the reflection
	Refused  string  // for the model: why its claim does not count
	Revision *Plan   // the changed plan, if the user must confirm it; proposed after Events
}

// Judge returns the consequences of the model's reflection on the current task. A claim that the task is done counts
// only if the task's effects are on record. The first claim without them is refused; the second one fails the task.
//
// Changes apply at once if all of them stay within the confirmed plan: they reword tasks, add tasks that need only
// confirmed tools, or drop tasks without effects. Other changes become a new revision of the plan. In a strict session
// all changes do.
//
// The error is a ValidationError that names the field. It has no consequences, and the model can try again.
func (s *Session) Judge(r Reflection, b Bind) (Verdict, error) {
	t := s.Current
	if t == nil {
		return Verdict{}, fault.Invalid("", "no task is in progress")
	}
	if err := r.check(); err != nil {
		return Verdict{}, err
	}
	seen := TaskReflected{TaskID: t.ID, Step: t.Steps, Reflection: r}
	over := func(status TaskStatus, why string) []Event {
		return []Event{{Reflected: &seen},
			{Finished: &Finished{TaskID: t.ID, Status: status, Result: r.Result, Error: why}}}
	}
	missing := t.missing(s.delivered())
	switch {
	case r.Failed:
		return Verdict{Events: over(TaskFailed, r.Reflection)}, nil
	case !r.Complete:
		return Verdict{Events: []Event{{Reflected: &seen}}}, nil
	case len(missing) > 0 && t.Refused:
		return Verdict{Events: over(TaskFailed, "The model reported it as done, but there is no "+
			strings.Join(missing, ", ")+" on record.")}, nil
	case len(missing) > 0:
		seen.Refused = "The task is not done: there is no completed call of " + strings.Join(missing, ", ") +
			" on record. Make the call, or say that the task has failed."
		return Verdict{Events: []Event{{Reflected: &seen}}, Refused: seen.Refused}, nil
	}
	verdict := Verdict{Events: over(TaskCompleted, "")}
	if len(r.Changes) == 0 {
		return verdict, nil
	}
	changes, revised, err := changed(s, r.Changes, b)
	switch {
	case err != nil:
		return Verdict{}, err
	case len(changes) == 0:
	case atOnce(s, changes):
		verdict.Events = append(verdict.Events, Event{Changed: &Changed{changes}})
	default:
		verdict.Revision = &revised
	}
	seen.Changes = changes
	return verdict, nil
}

func (r Reflection) check() error {
	switch {
	case visible.Blank(r.Reflection):
		return fault.Invalid("reflection", "a reflection is required")
	case len(r.Reflection) > MaxReflection:
		return fault.Invalid("reflection", "the limit of a reflection is %d bytes", MaxReflection)
	case len(r.Result) > MaxResult:
		return fault.Invalid("result", "the limit of a result is %d bytes", MaxResult)
	case r.Complete && r.Failed:
		return fault.Invalid("failed", "a task cannot be both complete and failed")
	case len(r.Changes) > 0 && !r.Complete:
		return fault.Invalid("changes", "only a complete task can change the plan")
	case len(r.Changes) > maxChanges:
		return fault.Invalid("changes", "the limit is %d changes", maxChanges)
	}
	return nil
}

// changed returns the changes in their normal form, without those that change nothing, and the resulting plan once the
// current task is done.
func changed(s *Session, given []Change, b Bind) ([]Change, Plan, error) {
	b = s.Bind(b)
	b.Kept = append(b.Kept, s.Current.Task)
	var changes []Change
	for i, c := range given {
		c, err := oneChange(s, fmt.Sprintf("changes/%d", i), c, &b)
		if err != nil {
			return nil, Plan{}, err
		}
		if c.Op != Modify || !byID(s.Plan.Tasks, c.TaskID).same(*c.Task) {
			changes = append(changes, c)
		}
	}
	plan, err := Apply(*s.Plan, changes)
	if err != nil {
		return nil, Plan{}, err
	}
	// Grants that no longer allow anything are not shown to the user again.
	plan.Grants = slices.DeleteFunc(slices.Clone(plan.Grants),
		func(g Grant) bool { return s.revoked[g.ID] || !b.Now.Before(g.Until) })
	if len(plan.Tasks) == len(b.Kept) {
		return changes, plan, nil
	}
	plan, err = b.Normalize(plan)
	return changes, plan, err
}

// oneChange returns a change in its normal form. An added task gets the next ID of b.
func oneChange(s *Session, field string, c Change, b *Bind) (Change, error) {
	known := s.Task(c.TaskID)
	c.Reason = strings.TrimSpace(c.Reason)
	switch {
	case utf8.RuneCountInString(c.Reason) > MaxSentence:
		return c, fault.Invalid(field+"/reason", "the limit of a reason is %d characters", MaxSentence)
	case c.Op == Add && c.TaskID != "" && (known == nil || known.Status == TaskObsolete):
		return c, fault.Invalid(field+"/taskId", "unknown task")
	case c.Op != Add && (known == nil || known.Status != TaskPending):
		return c, fault.Invalid(field+"/taskId", "unknown task, or one that is not open")
	case c.Op == Obsolete:
		c.Task = nil
		return c, nil
	case c.Op != Add && c.Op != Modify:
		return c, fault.Invalid(field+"/op", "must be add, modify or obsolete")
	case c.Task == nil:
		return c, fault.Invalid(field+"/task", "the task is missing")
	}
	task, err := b.task(field+"/task", *c.Task)
	if err != nil {
		return c, err
	}
	task.ID = c.TaskID
	if c.Op == Add {
		task.ID = fmt.Sprintf("t%d", b.NextID)
		b.NextID++
	}
	c.Task = &task
	return c, nil
}

// atOnce reports whether the user's confirmation of the plan covers all the changes.
func atOnce(s *Session, changes []Change) bool {
	if s.Confirmed.Strict {
		return false
	}
	confirmed, added := s.Confirmed.Plan.Tools(), s.added
	for _, c := range changes {
		covered := false
		switch was := byID(s.Plan.Tasks, c.TaskID); c.Op {
		case Add:
			added++
			covered = added <= MaxAdded &&
				!slices.ContainsFunc(c.Task.Tools, func(name string) bool { return !slices.Contains(confirmed, name) })
		case Modify:
			covered = slices.Equal(was.Tools, c.Task.Tools) && slices.Equal(was.Effects, c.Task.Effects) &&
				was.GreenWithin == c.Task.GreenWithin
		case Obsolete:
			covered = len(was.Effects) == 0 && was.GreenWithin == 0
		}
		if !covered {
			return false
		}
	}
	return true
}

// Begin returns the event that starts the next task, or nothing if no task can start now.
func (s *Session) Begin() []Event {
	if s.Phase() != Acting || s.Current != nil {
		return nil
	}
	return []Event{{Started: &Started{s.NextPending().ID}}}
}

// GiveUp returns the event that gives up the current task or the planning of changes. It returns nothing if neither is
// in progress.
func (s *Session) GiveUp(why string) []Event {
	switch {
	case s.Current != nil:
		return []Event{{Finished: &Finished{TaskID: s.Current.ID, Status: TaskFailed, Error: why}}}
	case s.Phase() == Planning && s.cause == changes:
		return []Event{{Closed: &Closed{How: GivenUp}}}
	}
	return nil
}
