package plan

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/countersign-run/countersign/shared/base/fault"
)

// Op is the kind of a change.
type Op string

// The values of Op.
const (
	Add      Op = "add"
	Modify   Op = "modify"
	Obsolete Op = "obsolete"
)

// A Change is one change of a plan's tasks.
type Change struct {
	Op     Op     `json:"op" jsonschema:"add, modify or obsolete"`
	TaskID string `json:"taskId,omitempty" jsonschema:"of the task that is changed; with add, of the one that it comes after; the last one if left out"`
	Task   *Task  `json:"task,omitempty" jsonschema:"the task as it is from now on; not with obsolete"`
	Reason string `json:"reason" jsonschema:"one sentence for the user"`
}

// A GrantChange is one change of a plan's grants.
type GrantChange struct {
	Op    Op     `json:"op"`
	Grant Grant  `json:"grant"`
	Was   *Grant `json:"was,omitempty"` // with modify
}

// A Difference holds the changes from one plan to another.
type Difference struct {
	Tasks       []Change      `json:"tasks,omitempty"`
	Grants      []GrantChange `json:"grants,omitempty"`
	Questions   bool          `json:"questions,omitempty"`
	Assumptions bool          `json:"assumptions,omitempty"`
}

// Empty reports whether nothing changed.
func (d Difference) Empty() bool {
	return len(d.Tasks) == 0 && len(d.Grants) == 0 && !d.Questions && !d.Assumptions
}

// Diff returns the changes from before to after. [Apply] with the task changes turns before's tasks into after's.
func Diff(before, after Plan) Difference {
	return Difference{Tasks: diffTasks(before.Tasks, after.Tasks), Grants: diffGrants(before.Grants, after.Grants),
		Questions:   !slices.Equal(before.Questions, after.Questions),
		Assumptions: !slices.Equal(before.Assumptions, after.Assumptions)}
}

// diffTasks first drops the tasks that are missing in after or have moved, and then visits after in order.
func diffTasks(before, after []Task) []Change {
	var out []Change
	stays := inOrder(before, after)
	for _, t := range before {
		if !stays[t.ID] {
			out = append(out, Change{Op: Obsolete, TaskID: t.ID})
		}
	}
	last := ""
	for i, t := range after {
		was := byID(before, t.ID)
		switch {
		case !stays[t.ID] && i == 0 && len(stays) > 0:
			out = append(out, Change{Op: Add, TaskID: First, Task: &after[i]})
		case !stays[t.ID]:
			out = append(out, Change{Op: Add, TaskID: last, Task: &after[i]})
		case !was.same(t):
			out = append(out, Change{Op: Modify, TaskID: t.ID, Task: &after[i]})
		}
		last = t.ID
	}
	return out
}

// First as Change.TaskID puts an added task before all others.
const First = "first"

// inOrder returns the IDs of a longest common subsequence of both lists.
func inOrder(before, after []Task) map[string]bool {
	longest := make([][]int, len(before)+1) // lengths for before[i:] and after[j:]
	for i := range longest {
		longest[i] = make([]int, len(after)+1)
	}
	for i := len(before) - 1; i >= 0; i-- {
		for j := len(after) - 1; j >= 0; j-- {
			longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			if before[i].ID == after[j].ID {
				longest[i][j] = longest[i+1][j+1] + 1
			}
		}
	}
	stays := map[string]bool{}
	for i, j := 0, 0; i < len(before) && j < len(after); {
		switch {
		case before[i].ID == after[j].ID:
			stays[before[i].ID] = true
			i, j = i+1, j+1
		case longest[i+1][j] >= longest[i][j+1]:
			i++
		default:
			j++
		}
	}
	return stays
}

func diffGrants(before, after []Grant) []GrantChange {
	var out []GrantChange
	for _, g := range before {
		if !slices.ContainsFunc(after, func(a Grant) bool { return a.ID == g.ID }) {
			out = append(out, GrantChange{Op: Obsolete, Grant: g})
		}
	}
	for _, g := range after {
		i := slices.IndexFunc(before, func(b Grant) bool { return b.ID == g.ID })
		switch {
		case i < 0:
			out = append(out, GrantChange{Op: Add, Grant: g})
		case !before[i].same(g):
			out = append(out, GrantChange{Op: Modify, Grant: g, Was: &before[i]})
		}
	}
	return out
}

func (g Grant) same(as Grant) bool {
	return g.ID == as.ID && g.Tool == as.Tool && g.Version == as.Version && bytes.Equal(g.Target, as.Target) &&
		g.MaxCalls == as.MaxCalls && g.Until.Equal(as.Until)
}

func (t Task) same(as Task) bool {
	return t.ID == as.ID && t.Title == as.Title && t.Goal == as.Goal && t.DoneWhen == as.DoneWhen &&
		slices.Equal(t.Tools, as.Tools) && slices.Equal(t.Effects, as.Effects) && t.GreenWithin == as.GreenWithin
}

// Apply returns the plan with the changes made in order. It does not modify p. The error is a ValidationError that
// names the field. It is for an unknown or duplicate task, and for a change with a missing field.
func Apply(p Plan, changes []Change) (Plan, error) {
	p.Tasks = slices.Clone(p.Tasks)
	for i, c := range changes {
		field := fmt.Sprintf("changes/%d", i)
		at := slices.IndexFunc(p.Tasks, func(t Task) bool { return t.ID == c.TaskID })
		switch {
		case !slices.Contains([]Op{Add, Modify, Obsolete}, c.Op):
			return Plan{}, fault.Invalid(field+"/op", "must be add, modify or obsolete")
		case at < 0 && !(c.Op == Add && (c.TaskID == "" || c.TaskID == First)):
			return Plan{}, fault.Invalid(field+"/taskId", "unknown task, or one that is not open")
		case c.Op == Obsolete:
			p.Tasks = slices.Delete(p.Tasks, at, at+1)
			continue
		case c.Task == nil:
			return Plan{}, fault.Invalid(field+"/task", "the task is missing")
		case c.Op == Modify && c.Task.ID != c.TaskID:
			return Plan{}, fault.Invalid(field+"/task/id", "the ID of a task cannot change")
		case c.Op == Modify:
			p.Tasks[at] = *c.Task
			continue
		case p.Task(c.Task.ID) != nil:
			return Plan{}, fault.Invalid(field+"/task/id", "another task has this ID")
		case c.TaskID == First:
			at = -1
		case c.TaskID == "":
			at = len(p.Tasks) - 1
		}
		p.Tasks = slices.Insert(p.Tasks, at+1, *c.Task)
	}
	return p, nil
}

func byID(tasks []Task, id string) Task {
	i := slices.IndexFunc(tasks, func(t Task) bool { return t.ID == id })
	if i < 0 {
		return Task{}
	}
	return tasks[i]
}
