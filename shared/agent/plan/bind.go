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

// Bind holds the facts that a plan is bound to, which neither the model nor an edit can set. [Session.Bind] fills in
// the facts that follow from the session.
type Bind struct {
	Repo     Repo
	Deadline time.Time
	Now      time.Time      // from the store's clock
	Tools    tool.Set       // the session's tools, without those of this package
	Zone     *time.Location // time zone of the card; nil: UTC

	Before *Plan  // the current plan, or the one proposed last; tasks and grants keep its IDs
	Kept   []Task // completed tasks; they come first and cannot change
	NextID int    // the smallest number that no task or grant has used
}

var (
	taskID  = lazyregexp.New(`^t[1-9][0-9]{0,3}$`)
	grantID = lazyregexp.New(`^g[1-9][0-9]{0,3}$`)
)

// Normalize returns the plan in its normal form: bound, within all limits, with IDs, and with sets sorted and without
// duplicates. Each target consists of its tool's pinned arguments. A second Normalize changes nothing. The error is a
// ValidationError that names the field, such as tasks/3/title, and repeats none of its text.
func (b Bind) Normalize(p Plan) (Plan, error) {
	switch {
	case p.Repo != "" && p.Repo != b.Repo:
		return Plan{}, fault.Invalid("repo", "a session's repository cannot change; omit this")
	case !p.Deadline.IsZero() && !p.Deadline.Equal(b.Deadline):
		return Plan{}, fault.Invalid("deadline", "a session's deadline cannot change; omit this")
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
		return Plan{}, fault.Invalid("tasks", "the plan exceeds %d KiB", MaxPlan>>10)
	}
	normal.Tasks = slices.Concat(b.Kept, tasks)
	return normal, nil
}

// tasks returns the open tasks.
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
			return nil, fault.Invalid(field+"/id", "duplicate task ID")
		}
		open = append(open, t)
	}
	switch {
	case len(open) == 0:
		return nil, fault.Invalid("tasks", "a plan needs at least one open task")
	case len(open) > MaxTasks:
		return nil, fault.Invalid("tasks", "too many open tasks; the limit is %d", MaxTasks)
	}
	return b.named(open), nil
}

// kept reports whether the task is a completed one, by comparing title and goal. A different task with the ID of a
// completed one is refused. Otherwise it would be left out and count as done.
func (b Bind) kept(field string, t Task) (bool, error) {
	for _, done := range b.Kept {
		same := done.Title == strings.TrimSpace(t.Title) && done.Goal == strings.TrimSpace(t.Goal)
		switch {
		case same && (t.ID == "" || t.ID == done.ID):
			return true, nil
		case t.ID == done.ID:
			return false, fault.Invalid(field+"/id", "the task with this ID is done; omit the ID for a new task")
		}
	}
	return false, nil
}

// task returns one task in its normal form. It removes an invalid ID.
func (b Bind) task(field string, t Task) (Task, error) {
	t.Title, t.Goal, t.DoneWhen = strings.TrimSpace(t.Title), strings.TrimSpace(t.Goal), strings.TrimSpace(t.DoneWhen)
	switch {
	case visible.Blank(t.Title):
		return t, fault.Invalid(field+"/title", "a title is required")
	case utf8.RuneCountInString(t.Title) > MaxTitle:
		return t, fault.Invalid(field+"/title", "the limit of a title is %d characters", MaxTitle)
	case strings.ContainsAny(t.Title, "\n\r\u0085\u2028\u2029"):
		return t, fault.Invalid(field+"/title", "a title must be one line")
	case visible.Blank(t.Goal):
		return t, fault.Invalid(field+"/goal", "a goal is required")
	case len(t.Goal) > MaxGoal:
		return t, fault.Invalid(field+"/goal", "the limit of a goal is %d bytes", MaxGoal)
	case len(t.DoneWhen) > MaxGoal:
		return t, fault.Invalid(field+"/doneWhen", "the limit is %d bytes", MaxGoal)
	case t.GreenWithin < 0 || t.GreenWithin > MaxTries:
		return t, fault.Invalid(field+"/greenWithin", "must be from 0 to %d", MaxTries)
	case t.GreenWithin > 0:
		t.Tools = append(slices.Clone(t.Tools), waitForChecks)
	}
	for i, name := range t.Tools {
		if b.Tools[name] == nil {
			return t, fault.Invalid(fmt.Sprintf("%s/tools/%d", field, i), "unknown tool")
		}
	}
	for i, name := range t.Effects {
		if known := b.Tools[name]; known == nil || !known.SideEffect {
			return t, fault.Invalid(fmt.Sprintf("%s/effects/%d", field, i), "unknown tool, or a tool without an effect")
		}
	}
	if !taskID.MatchString(t.ID) {
		t.ID = ""
	}
	t.Tools, t.Effects = set(slices.Concat(t.Tools, t.Effects)), set(t.Effects)
	return t, nil
}

// named gives an ID to each task without one: the ID of the earlier task with the same title, or a new one.
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

// fillIDs sets each empty ID to the one in before, if no other has it, or to the next free number.
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
		return nil, fault.Invalid("grants", "the limit of a plan is %d grants", MaxGrants)
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
				return nil, fault.Invalid(field+"/id", "duplicate grant ID")
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
		return g, fault.Invalid(field+"/tool", "unknown tool, or a tool without an effect")
	case !t.Pins():
		return g, fault.Invalid(field+"/tool", "every call of this tool needs its own approval; it cannot be granted")
	case g.MaxCalls < 1 || g.MaxCalls > MaxCalls:
		return g, fault.Invalid(field+"/maxCalls", "must be 1 to %d", MaxCalls)
	case g.Until.IsZero():
		g.Until = b.Deadline
	case !b.Now.Before(g.Until):
		return g, fault.Invalid(field+"/until", "must be in the future")
	case g.Until.After(b.Deadline):
		return g, fault.Invalid(field+"/until", "must not be after the deadline")
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

// target returns the target's pinned arguments. All of its fields must be pinned. It must be in the session's
// repository, unless the tool acts only in the session's containers.
func (b Bind) target(field string, t *tool.Tool, target json.RawMessage) (json.RawMessage, error) {
	if len(target) > MaxTarget {
		return nil, fault.Invalid(field, "the limit of a target is %d bytes", MaxTarget)
	}
	given, err := strictjson.Canonical(target)
	if err != nil {
		return nil, fault.Invalid(field, "must be an object with the arguments that are not free text").Because(err)
	}
	pinned, err := t.Pinned(given)
	if err != nil {
		return nil, fault.Invalid(field, "not the arguments of this tool").Because(err)
	}
	if err := t.CheckPinned(pinned); err != nil {
		return nil, fault.Invalid(strings.TrimSuffix(field+"/"+fault.As(err).Field, "/"), "%s", fault.As(err).Message)
	}
	var has, stays map[string]json.RawMessage
	if json.Unmarshal(given, &has) != nil || json.Unmarshal(pinned, &stays) != nil {
		return nil, fault.Invalid(field, "not the arguments of this tool")
	}
	for name := range has {
		if _, ok := stays[name]; !ok {
			return nil, fault.Invalid(field, "a field is free text, or not an argument of the tool")
		}
	}
	if !t.Contained && !b.inRepo(stays) {
		return nil, fault.Invalid(field, "must be in the session's repository or its containers")
	}
	return pinned, nil
}

// inRepo reports whether a target names the session's repository, with the same upper and lower case.
func (b Bind) inRepo(target map[string]json.RawMessage) bool {
	var owner, name string
	return json.Unmarshal(target["owner"], &owner) == nil && json.Unmarshal(target["repo"], &name) == nil &&
		owner == b.Repo.Owner() && name == b.Repo.Name()
}

// namedGrants gives an ID to each grant without one: the ID of the earlier grant for the same calls, or a new one.
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
		return nil, fault.Invalid(field, "the limit is %d entries", most)
	}
	var out []string
	for i, s := range given {
		s = strings.TrimSpace(s)
		switch {
		case visible.Blank(s):
			return nil, fault.Invalid(fmt.Sprintf("%s/%d", field, i), "must not be empty")
		case utf8.RuneCountInString(s) > MaxSentence:
			return nil, fault.Invalid(fmt.Sprintf("%s/%d", field, i), "more than %d characters", MaxSentence)
		}
		out = append(out, s)
	}
	return out, nil
}
