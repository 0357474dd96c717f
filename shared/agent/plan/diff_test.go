package plan_test

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// someTasks draws tasks with distinct IDs in any order. Their titles sometimes differ.
func someTasks(t *rapid.T, label string) []plan.Task {
	ids := rapid.Permutation([]string{"t1", "t2", "t3", "t4", "t5"}).Draw(t, label)
	var out []plan.Task
	for _, id := range ids[:rapid.IntRange(0, 5).Draw(t, label+"s")] {
		one := task(rapid.SampledFrom([]string{"A", "B"}).Draw(t, "title"))
		one.ID = id
		out = append(out, one)
	}
	return out
}

// TestDiffApplied checks that the result of Diff leads from one plan to the other, and that equal plans have no
// difference.
func TestDiffApplied(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		before, after := plan.Plan{Tasks: someTasks(t, "before")}, plan.Plan{Tasks: someTasks(t, "after")}
		was := slices.Clone(before.Tasks)
		d := plan.Diff(before, after)
		got, err := plan.Apply(before, d.Tasks)
		if err != nil {
			t.Fatal(err)
		}
		if len(got.Tasks)+len(after.Tasks) > 0 && !reflect.DeepEqual(got.Tasks, after.Tasks) {
			t.Fatalf("%+v leads to %+v, want %+v", d.Tasks, got.Tasks, after.Tasks)
		}
		if !reflect.DeepEqual(before.Tasks, was) {
			t.Fatal("Apply modified the plan")
		}
		if d := plan.Diff(after, after); !d.Empty() {
			t.Fatalf("difference of equal plans: %+v", d)
		}
	})
}

func TestDiffOfGrants(t *testing.T) {
	one, two, three := grant(1), grant(1), grant(2)
	one.ID, two.ID, three.ID = "g1", "g2", "g1"
	two.Target = json.RawMessage(`{"owner":"acme","repo":"web","labels":["a"]}`)
	d := plan.Diff(plan.Plan{Grants: []plan.Grant{one}}, plan.Plan{Grants: []plan.Grant{three, two}})
	if len(d.Grants) != 2 || d.Grants[0].Op != plan.Modify || d.Grants[0].Was.MaxCalls != 1 ||
		d.Grants[1].Op != plan.Add {
		t.Errorf("%+v; want len(d.Grants) 2, d.Grants[0].Op %v, d.Grants[0].Was.MaxCalls 1, d.Grants[1].Op %v",
			d.Grants, plan.Modify, plan.Add)
	}
	d = plan.Diff(plan.Plan{Grants: []plan.Grant{one}, Questions: []string{"?"}}, plan.Plan{Assumptions: []string{"!"}})
	if len(d.Grants) != 1 || d.Grants[0].Op != plan.Obsolete || !d.Questions || !d.Assumptions || d.Empty() {
		t.Errorf("%+v", d)
	}
}

func TestApplyRefuses(t *testing.T) {
	one := task("One")
	one.ID = "t1"
	other := task("Other")
	other.ID = "t2"
	for name, c := range map[string]struct {
		change plan.Change
		field  string
	}{
		"no op":               {plan.Change{Op: "replace", TaskID: "t1", Task: &one}, "changes/0/op"},
		"nothing there":       {plan.Change{Op: plan.Obsolete, TaskID: "t9"}, "changes/0/taskId"},
		"no id":               {plan.Change{Op: plan.Modify, Task: &one}, "changes/0/taskId"},
		"after nothing":       {plan.Change{Op: plan.Add, TaskID: "t9", Task: &other}, "changes/0/taskId"},
		"no task":             {plan.Change{Op: plan.Modify, TaskID: "t1"}, "changes/0/task"},
		"another id":          {plan.Change{Op: plan.Modify, TaskID: "t1", Task: &other}, "changes/0/task/id"},
		"the same task again": {plan.Change{Op: plan.Add, Task: &one}, "changes/0/task/id"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := plan.Apply(plan.Plan{Tasks: []plan.Task{one}}, []plan.Change{c.change})
			if f := fault.As(err); err == nil || f.Class != fault.Validation || f.Field != c.field {
				t.Error(err)
			}
		})
	}
}
