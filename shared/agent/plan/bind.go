package plan

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/base/visible"
)

// Bind is what a plan is bound to: what neither the model nor an edit can set. [Session.Bind] fills in what follows
// from the session.
type Bind struct {
	Repo     Repo
	Deadline time.Time
	Now      time.Time      // by the store's clock
	Tools    tool.Set       // that the session has, without those of this package
	Zone     *time.Location // of the card's times; nil: UTC

	Before *Plan  // that stands, or was proposed last: its tasks and grants keep their ids
	Kept   []Task // that are done: they come first, and nothing changes them
	NextID int    // the smallest number that no task or grant has had
}

var (
	taskID  = lazyregexp.New(`^t[1-9][0-9]{0,3}$`)
	grantID = lazyregexp.New(`^g[1-9][0-9]{0,3}$`)
)

// Normalize returns the plan in its one form: bound, within all limits, with ids, sets sorted and without repeats, each
// target as its tool's Bound gives it. To normalise a plan again changes nothing. The error is a ValidationError that
// names the field, such as tasks/3/title, and repeats none of its text.
func (b Bind) Normalize(p Plan) (Plan, error) {
	switch {
	case p.Repo != "" && p.Repo != b.Repo:
		return Plan{}, fault.Invalid("repo", "the repository of a session does not change; leave this out")
	case !p.Deadline.IsZero() && !p.Deadline.Equal(b.Deadline):
		return Plan{}, fault.Invalid("deadline", "the deadline of a session does not change; leave this out")
	}
	tasks, err := b.tasks(p.Tasks)
	if err != nil {
		return Plan{}, err
	}
	grants, err := b.grants(p.Grants)
	if err != nil {
		return Plan{}, err
	}
	questions, err := sentences("questions", p.Questions, MaxQuestions)
	if err != nil {
		return Plan{}, err
	}
	assumptions, err := sentences("assumptions", p.Assumptions, MaxAssumptions)
	if err != nil {
		return Plan{}, err
	}
	normal := Plan{Repo: b.Repo, Deadline: b.Deadline.UTC(), Tasks: tasks, Grants: grants, Questions: questions,
		Assumptions: assumptions}
	bytes, err := normal.Canonical()
	if err != nil {
		return Plan{}, err
	}
	if len(bytes) > MaxPlan {
		return Plan{}, fault.Invalid("tasks", "the plan has more than %d KiB", MaxPlan>>10)
	}
	normal.Tasks = slices.Concat(b.Kept, tasks)
	return normal, nil
}

// tasks returns the tasks that are still to be done.
func (b Bind) tasks(given []Task) ([]Task, error) {
	var open []Task
	for i, t := range given {
		field := "tasks/" + strconv.Itoa(i)
		kept, err := b.kept(field, t)
		if err != nil {
			return nil, err
		}
		if kept {
			continue
		}
		t, err := b.task(field, t)
		if err != nil {
			return nil, err
		}
		if t.ID != "" && byID(open, t.ID).ID != "" {
			return nil, fault.Invalid(field+"/id", "another task has this id")
		}
		open = append(open, t)
	}
	switch {
	case len(open) == 0:
		return nil, fault.Invalid("tasks", "a plan has at least one task that is still to be done")
	case len(open) > MaxTasks:
		return nil, fault.Invalid("tasks", "a plan has at most %d tasks", MaxTasks)
	}
	return b.named(open), nil
}

// kept reports whether the task is one that is done, by what it is. Another task under its id is refused: left out, it
// would count as done.
func (b Bind) kept(field string, t Task) (bool, error) {
	for _, done := range b.Kept {
		same := done.Title == strings.TrimSpace(t.Title) && done.Goal == strings.TrimSpace(t.Goal)
		switch {
		case same && (t.ID == "" || t.ID == done.ID):
			return true, nil
		case t.ID == done.ID:
			return false, fault.Invalid(field+"/id", "the task with this id is done; another task has no id yet")
		}
	}
	return false, nil
}

// task returns one task in its form, with its id if that can be one.
func (b Bind) task(field string, t Task) (Task, error) {
	t.Title, t.Goal, t.DoneWhen = strings.TrimSpace(t.Title), strings.TrimSpace(t.Goal), strings.TrimSpace(t.DoneWhen)
	switch {
	case visible.Blank(t.Title):
		return t, fault.Invalid(field+"/title", "a title is needed")
	case utf8.RuneCountInString(t.Title) > MaxTitle:
		return t, fault.Invalid(field+"/title", "a title has at most %d characters", MaxTitle)
	case strings.ContainsAny(t.Title, "\n\r\u0085\u2028\u2029"):
		return t, fault.Invalid(field+"/title", "a title is one line")
	case visible.Blank(t.Goal):
		return t, fault.Invalid(field+"/goal", "a goal is needed")
	case len(t.Goal) > MaxGoal:
		return t, fault.Invalid(field+"/goal", "a goal has at most %d bytes", MaxGoal)
	case len(t.DoneWhen) > MaxGoal:
		return t, fault.Invalid(field+"/doneWhen", "this has at most %d bytes", MaxGoal)
	}
	for i, name := range t.Tools {
		if b.Tools[name] == nil {
			return t, fault.Invalid(fmt.Sprintf("%s/tools/%d", field, i), "there is no such tool here")
		}
	}
	for i, name := range t.Effects {
		if known := b.Tools[name]; known == nil || !known.SideEffect {
			return t, fault.Invalid(fmt.Sprintf("%s/effects/%d", field, i), "there is no such tool here with an effect")
		}
	}
	if !taskID.MatchString(t.ID) {
		t.ID = ""
	}
	t.Tools, t.Effects = set(slices.Concat(t.Tools, t.Effects)), set(t.Effects)
	return t, nil
}

// named gives an id to each task without one: that of the task before with the same title, or a fresh one.
func (b Bind) named(tasks []Task) []Task {
	var taken, before []string
	for _, t := range b.Kept {
		taken = append(taken, t.ID)
	}
	ids := make([]*string, len(tasks))
	for i := range tasks {
		ids[i] = &tasks[i].ID
		before = append(before, "")
		if b.Before != nil {
			was := slices.IndexFunc(b.Before.Tasks, func(t Task) bool { return t.Title == tasks[i].Title })
			if was >= 0 {
				before[i] = b.Before.Tasks[was].ID
			}
		}
	}
	fillIDs("t", b.NextID, ids, before, taken)
	return tasks
}

// fillIDs sets each id that is empty: to that of before, if no other has it, or to one with the next free number.
func fillIDs(prefix string, next int, ids []*string, before, taken []string) {
	for _, id := range ids {
		taken = append(taken, *id)
	}
	next = max(next, 1)
	for i, id := range ids {
		if *id == "" && !slices.Contains(taken, before[i]) {
			*id = before[i]
		}
		for *id == "" {
			if fresh := prefix + strconv.Itoa(next); !slices.Contains(taken, fresh) {
				*id = fresh
			}
			next++
		}
		taken = append(taken, *id)
	}
}

func (b Bind) grants(given []Grant) ([]Grant, error) {
	if len(given) > MaxGrants {
		return nil, fault.Invalid("grants", "a plan has at most %d grants", MaxGrants)
	}
	var out []Grant
	for i, g := range given {
		field := "grants/" + strconv.Itoa(i)
		g, err := b.grant(field, g)
		if err != nil {
			return nil, err
		}
		for _, other := range out {
			switch {
			case g.key() == other.key():
				return nil, fault.Invalid(field+"/target", "another grant has this tool and target")
			case g.ID != "" && g.ID == other.ID:
				return nil, fault.Invalid(field+"/id", "another grant has this id")
			}
		}
		out = append(out, g)
	}
	return b.namedGrants(out), nil
}

func (b Bind) grant(field string, g Grant) (Grant, error) {
	t := b.Tools[g.Tool]
	switch {
	case t == nil || !t.SideEffect:
		return g, fault.Invalid(field+"/tool", "there is no such tool here with an effect")
	case !t.Bounded():
		return g, fault.Invalid(field+"/tool", "each call of this tool is asked about; it cannot be granted")
	case g.MaxCalls < 1 || g.MaxCalls > MaxCalls:
		return g, fault.Invalid(field+"/maxCalls", "a grant is for 1 to %d calls", MaxCalls)
	case g.Until.IsZero():
		g.Until = b.Deadline
	case !b.Now.Before(g.Until):
		return g, fault.Invalid(field+"/until", "this moment has passed")
	case g.Until.After(b.Deadline):
		return g, fault.Invalid(field+"/until", "a grant ends with the deadline at the latest")
	}
	target, err := b.target(field+"/target", t, g.Target)
	if err != nil {
		return g, err
	}
	if !grantID.MatchString(g.ID) {
		g.ID = ""
	}
	g.Version, g.Target, g.Until = t.Version(), target, g.Until.UTC()
	return g, nil
}

// target returns what the tool's Bound makes of the target. Everything in it must be bound, and it must lie in the
// session's repository, or the tool acts in the session's own containers alone.
func (b Bind) target(field string, t *tool.Tool, target json.RawMessage) (json.RawMessage, error) {
	if len(target) > MaxTarget {
		return nil, fault.Invalid(field, "a target has at most %d bytes", MaxTarget)
	}
	given, err := strictjson.Canonical(target)
	if err != nil {
		return nil, fault.Invalid(field, "an object with the arguments that are not free text is needed").Because(err)
	}
	bound, err := t.Bound(given)
	if err != nil {
		return nil, fault.Invalid(field, "these are not arguments of the tool").Because(err)
	}
	if err := t.CheckBound(bound); err != nil {
		return nil, fault.Invalid(strings.TrimSuffix(field+"/"+fault.As(err).Field, "/"), "%s", fault.As(err).Message)
	}
	var has, stays map[string]json.RawMessage
	if json.Unmarshal(given, &has) != nil || json.Unmarshal(bound, &stays) != nil {
		return nil, fault.Invalid(field, "these are not arguments of the tool")
	}
	for name := range has {
		if _, ok := stays[name]; !ok {
			return nil, fault.Invalid(field, "it has a member that is free text, or no argument of the tool")
		}
	}
	if !t.Contained && !b.inRepo(stays) {
		return nil, fault.Invalid(field, "nothing is granted outside the session's repository and its containers")
	}
	return bound, nil
}

// inRepo reports whether a target names the session's repository, in the letters in which it is written here.
func (b Bind) inRepo(target map[string]json.RawMessage) bool {
	var owner, name string
	return json.Unmarshal(target["owner"], &owner) == nil && json.Unmarshal(target["repo"], &name) == nil &&
		owner == b.Repo.Owner() && name == b.Repo.Name()
}

// namedGrants gives an id to each grant without one: that of the grant before for the same calls, or a fresh one.
func (b Bind) namedGrants(grants []Grant) []Grant {
	var before []string
	ids := make([]*string, len(grants))
	for i := range grants {
		ids[i] = &grants[i].ID
		before = append(before, "")
		if b.Before != nil {
			was := slices.IndexFunc(b.Before.Grants, func(g Grant) bool { return g.key() == grants[i].key() })
			if was >= 0 {
				before[i] = b.Before.Grants[was].ID
			}
		}
	}
	fillIDs("g", b.NextID, ids, before, nil)
	return grants
}

func sentences(field string, given []string, most int) ([]string, error) {
	if len(given) > most {
		return nil, fault.Invalid(field, "there are at most %d of them", most)
	}
	var out []string
	for i, s := range given {
		s = strings.TrimSpace(s)
		switch {
		case visible.Blank(s):
			return nil, fault.Invalid(fmt.Sprintf("%s/%d", field, i), "this is empty")
		case utf8.RuneCountInString(s) > MaxSentence:
			return nil, fault.Invalid(fmt.Sprintf("%s/%d", field, i), "this has more than %d characters", MaxSentence)
		}
		out = append(out, s)
	}
	return out, nil
}
