package plan_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/fields"
)

// threeTasks returns a plan whose second task only reads and whose third has an effect.
func threeTasks() plan.Plan {
	return plan.Plan{Tasks: []plan.Task{task("One"), task("Two"), task("Three", opens)},
		Grants: []plan.Grant{grant(2), {Tool: "docker.executeScript", Target: json.RawMessage(`{"path":"/"}`),
			MaxCalls: 1, Until: now.Add(time.Hour)}}}
}

func reworded(id, title string, more ...func(*plan.Task)) plan.Change {
	t := task(title, more...)
	return plan.Change{Op: plan.Modify, TaskID: id, Task: &t, Reason: "It is clearer."}
}

func added(title, after string, more ...func(*plan.Task)) plan.Change {
	t := task(title, more...)
	return plan.Change{Op: plan.Add, TaskID: after, Task: &t, Reason: "It is required."}
}

// nNew adds n tasks, one after the other.
func nNew(n int) []plan.Change { return slices.Repeat([]plan.Change{added("New", "")}, n) }

// ids returns the IDs of the first n tasks.
func ids(n int) string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("t%d", i+1))
	}
	return strings.Join(out, " ")
}

func scripts(t *plan.Task) { t.Tools = append(t.Tools, "docker.executeScript") }

// TestChanges checks which changes apply at once, and which become a waiting revision (004-11).
func TestChanges(t *testing.T) {
	for name, c := range map[string]struct {
		changes []plan.Change
		atOnce  bool
		tasks   string // of the current or proposed plan, in order
	}{
		"reworded":             {[]plan.Change{reworded("t2", "Two, smaller")}, true, "t1 t2 t3"},
		"added":                {[]plan.Change{added("New", "")}, true, "t1 t2 t3 t4"},
		"added after":          {[]plan.Change{added("New", "t2"), added("Newer", "t1")}, true, "t1 t5 t2 t4 t3"},
		"added with an effect": {[]plan.Change{added("New", "", opens)}, true, "t1 t2 t3 t4"},
		"dropped":              {[]plan.Change{{Op: plan.Obsolete, TaskID: "t2"}}, true, "t1 t3"},
		"ten added":            {nNew(10), true, ids(13)},

		"eleven added":   {nNew(11), false, ids(14)},
		"another tool":   {[]plan.Change{added("New", "", scripts)}, false, "t1 t2 t3 t4"},
		"more tools":     {[]plan.Change{reworded("t2", "Two", scripts)}, false, "t1 t2 t3"},
		"an effect more": {[]plan.Change{reworded("t2", "Two", opens)}, false, "t1 t2 t3"},
		"an effect less": {[]plan.Change{reworded("t3", "Three")}, false, "t1 t2 t3"},
		"an effect that may be left out": {[]plan.Change{reworded("t3", "Three", func(t *plan.Task) {
			t.Tools = append(t.Tools, "github.createIssue")
		})}, false, "t1 t2 t3"},
		"an effect dropped":     {[]plan.Change{{Op: plan.Obsolete, TaskID: "t3"}}, false, "t1 t2"},
		"one of two that grows": {[]plan.Change{reworded("t2", "Smaller"), added("New", "", scripts)}, false, ids(4)},
	} {
		for _, strict := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, strict %v", name, strict), func(t *testing.T) {
				s := plan.NewSession()
				yes := confirmed("1")
				yes.Confirmed.Strict = strict
				apply(t, s, proposed(t, normal(t, bind(), threeTasks()), "1"), yes)
				apply(t, s, s.Begin()...)
				v := judge(t, s, complete(c.changes...))
				if s.Task("t1").Status != plan.TaskCompleted {
					t.Fatal("the task is not completed")
				}
				now := s.Plan
				if waits := v.Revision != nil; waits != (strict || !c.atOnce) {
					t.Fatalf("becomes a revision: %v", waits)
				} else if waits {
					now = v.Revision
				}
				var order []string
				for _, task := range now.Tasks {
					order = append(order, task.ID)
				}
				if got := strings.Join(order, " "); got != c.tasks {
					t.Errorf("%s, want %s", got, c.tasks)
				}
			})
		}
	}
}

func TestChangesAddTenTasks(t *testing.T) {
	s := executing(t, threeTasks())
	judge(t, s, complete(slices.Repeat([]plan.Change{added("New", "t1")}, 9)...))
	apply(t, s, s.Begin()...)
	if v := judge(t, s, complete(added("The tenth", ""))); v.Revision != nil {
		t.Error("the tenth task needs a confirmation")
	}
	apply(t, s, s.Begin()...)
	v := judge(t, s, complete(added("The eleventh", "")))
	if v.Revision == nil {
		t.Fatal("the eleventh task needs no confirmation")
	}
	apply(t, s, proposed(t, *v.Revision, "2"))
	if s.Status() != plan.StatusAwaiting {
		t.Error(s.Status())
	}
	apply(t, s, confirmed("2"))
	apply(t, s, s.Begin()...)
	if v := judge(t, s, complete(added("Another", ""))); v.Revision != nil {
		t.Error("a new confirmation does not reset the limit")
	}
}

// TestChangesRejected checks that the confirmed plan stays and the session continues with it.
func TestChangesRejected(t *testing.T) {
	s := executing(t, threeTasks())
	v := judge(t, s, complete(added("New", "", scripts)))
	apply(t, s, proposed(t, *v.Revision, "2"))
	if s.Begin() != nil {
		t.Error("a task started while a plan waited")
	}
	apply(t, s, plan.Event{Closed: &plan.Closed{ApprovalID: "p2", How: plan.Rejected}})
	apply(t, s, s.Begin()...)
	if s.Current.ID != "t2" || len(s.Tasks) != 3 {
		t.Errorf("current task %s, %d tasks", s.Current.ID, len(s.Tasks))
	}
}

func TestRevisionWithUsedGrant(t *testing.T) {
	s := executing(t, threeTasks())
	apply(t, s, plan.Event{Revoked: &plan.Revoked{GrantID: "g1"}})
	b := bind()
	b.Now = now.Add(2 * time.Hour)
	v, err := s.Judge(complete(added("New", "", scripts)), b)
	if err != nil || len(v.Revision.Grants) != 0 {
		t.Errorf("%v, %+v; want len(v.Revision.Grants) 0", err, v.Revision)
	}
}

func TestReflectionsRefused(t *testing.T) {
	long := strings.Repeat("x", 10<<10)
	for name, c := range map[string]struct {
		r     plan.Reflection
		field string
	}{
		"nothing said":       {plan.Reflection{Complete: true, Reflection: "\u200b"}, "reflection"},
		"too much said":      {plan.Reflection{Reflection: long}, "reflection"},
		"a long result":      {plan.Reflection{Reflection: "r", Result: long}, "result"},
		"both":               {plan.Reflection{Reflection: "r", Complete: true, Failed: true}, "failed"},
		"changes on the way": {plan.Reflection{Reflection: "r", Changes: []plan.Change{added("New", "")}}, "changes"},
		"many changes":       {complete(nNew(21)...), "changes"},
		"no op":              {complete(plan.Change{Op: "x", TaskID: "t2"}), "changes/0/op"},
		"what is done":       {complete(reworded("t1", "Another")), "changes/0/taskId"},
		"drops what is done": {complete(plan.Change{Op: plan.Obsolete, TaskID: "t1"}), "changes/0/taskId"},
		"what is not there":  {complete(added("New", ""), reworded("t9", "x")), "changes/1/taskId"},
		"after nothing":      {complete(added("New", "t9")), "changes/0/taskId"},
		"without a task":     {complete(plan.Change{Op: plan.Add}), "changes/0/task"},
		"a title":            {complete(added(strings.Repeat("a", 121), "")), "changes/0/task/title"},
		"an unknown tool": {complete(added("a", "", func(t *plan.Task) { t.Tools = []string{"x"} })),
			"changes/0/task/tools/0"},
		"a long reason": {complete(plan.Change{Op: plan.Obsolete, TaskID: "t2", Reason: long}),
			"changes/0/reason"},
		"dropped twice": {complete(slices.Repeat([]plan.Change{{Op: plan.Obsolete, TaskID: "t2"}}, 2)...),
			"changes/1/taskId"},
		"more than 20 to do": {complete(nNew(19)...), "tasks"},
		"more than the 32 KB": {complete(slices.Repeat([]plan.Change{added("New", "", func(t *plan.Task) {
			t.Goal = long[:2000]
		})}, 17)...), "tasks"},
	} {
		t.Run(name, func(t *testing.T) {
			s := executing(t, threeTasks())
			_, err := s.Judge(c.r, bind())
			fields.Check(t, *fault.As(err), fault.Error{Class: fault.Validation, Field: c.field})
			if s.Current == nil || s.Current.ID != "t1" {
				t.Error("the refused reflection changed the session")
			}
		})
	}
}

func TestChangesOnlyNew(t *testing.T) {
	s := executing(t, threeTasks())
	v := judge(t, s, complete(reworded("t2", "Two")))
	if v.Revision != nil || len(v.Events) != 2 {
		t.Errorf("%+v; want v.Revision nil, len(v.Events) 2", v)
	}
	if _, err := plan.NewSession().Judge(complete(), bind()); err == nil {
		t.Error("a reflection without a current task was accepted")
	}
}

// TestEffectsOnRecord checks that a task that must open an issue is done only if an issue is on record.
func TestEffectsOnRecord(t *testing.T) {
	open := plan.Act{ID: "a", Tool: "github.createIssue", Effect: true, Over: true, Execution: plan.Succeeded}
	for name, c := range map[string]struct {
		act  func(*plan.Act)
		done bool
	}{
		"opened":         {func(*plan.Act) {}, true},
		"unknown":        {func(a *plan.Act) { a.Execution = plan.Unknown }, false},
		"failed":         {func(a *plan.Act) { a.Execution = plan.Failed }, false},
		"under way":      {func(a *plan.Act) { a.Execution, a.Over = plan.Intent, false }, false},
		"another effect": {func(a *plan.Act) { a.Tool = "docker.executeScript" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := executing(t, plan.Plan{Tasks: []plan.Task{task("One", opens)}})
			act := open
			c.act(&act)
			s.Record(act)
			if v := judge(t, s, complete()); (v.Refused == "") != c.done {
				t.Errorf("%+v; want (v.Refused == \"\") %v", v, c.done)
			}
		})
	}
	s := executing(t, plan.Plan{Tasks: []plan.Task{task("One"), task("Two", opens)}})
	s.Record(open)
	judge(t, s, complete())
	apply(t, s, s.Begin()...)
	if v := judge(t, s, complete()); v.Refused == "" {
		t.Error("an effect of another task counts")
	}
	bad := plan.Event{Finished: &plan.Finished{TaskID: "t2", Status: plan.TaskCompleted}}
	if err := s.Apply(bad); err == nil {
		t.Error("Apply accepted the completion of a task without its effect")
	}
}
