package plan_test

import (
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/plan"
)

func complete(changes ...plan.Change) plan.Reflection {
	return plan.Reflection{Complete: true, Reflection: "It is reached.", Result: "The result.", Changes: changes}
}

func judge(t *testing.T, s *plan.Session, r plan.Reflection) plan.Verdict {
	t.Helper()
	v, err := s.Judge(r, bind())
	if err != nil {
		t.Fatal(err)
	}
	apply(t, s, v.Events...)
	return v
}

func TestSessionPhases(t *testing.T) {
	s := plan.NewSession()
	expect := func(want plan.Status) {
		t.Helper()
		if got := s.Status(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	expect(plan.StatusPlanning)
	p := normal(t, bind(), plan.Plan{Tasks: []plan.Task{task("One"), task("Two")}})
	apply(t, s, proposed(t, p, "1"))
	expect(plan.StatusAwaiting)
	apply(t, s, plan.Event{Closed: &plan.Closed{ApprovalID: "p1", How: plan.Refined, Words: "smaller"}})
	expect(plan.StatusPlanning)
	apply(t, s, proposed(t, p, "2"), confirmed("2"))
	expect(plan.StatusExecuting)
	for range p.Tasks {
		apply(t, s, s.Begin()...)
		judge(t, s, complete())
		expect(plan.StatusExecuting)
	}
	if s.Phase() != plan.Done || s.Revision != 2 {
		t.Errorf("phase %s after revision %d", s.Phase(), s.Revision)
	}
	if err := s.End(true, ""); err != nil {
		t.Fatal(err)
	}
	expect(plan.StatusCompleted)
}

func TestGrantUsedUp(t *testing.T) {
	s := executing(t, plan.Plan{Tasks: []plan.Task{task("One", opens)}, Grants: []plan.Grant{grant(2)}})
	bound, err := tools["github.createIssue"].Pinned([]byte(`{"owner":"acme","repo":"web","title":"Anything"}`))
	if err != nil {
		t.Fatal(err)
	}
	may := func(id string) bool {
		_, ok := s.GrantFor(plan.GrantCall{ActionID: id, Tool: "github.createIssue",
			Version: tools["github.createIssue"].Version(), Pinned: bound}, now)
		return ok
	}
	act := func(id string, e plan.Execution) {
		s.Record(plan.Act{ID: id, Tool: "github.createIssue", Effect: true, Grant: "g1", Execution: e})
	}
	act("a", plan.Intent)
	act("b", plan.Intent)
	if may("c") {
		t.Error("a third call was allowed by a grant of two")
	}
	if !may("b") {
		t.Error("a started call lost its grant")
	}
	act("b", plan.Unknown)
	if may("c") {
		t.Error("a call with an unknown outcome does not count as a use")
	}
	act("b", plan.Failed)
	if !may("c") {
		t.Error("a call that is proven to have failed still counts as a use")
	}
	apply(t, s, plan.Event{Revoked: &plan.Revoked{GrantID: "g1"}})
	if may("c") {
		t.Error("a revoked grant allowed a call")
	}
}

func TestClaimWithoutEffect(t *testing.T) {
	s := executing(t, plan.Plan{Tasks: []plan.Task{task("One", opens)}})
	if v := judge(t, s, complete()); !strings.Contains(v.Refused, "github.createIssue") || s.Current == nil {
		t.Fatalf("%+v; want v.Refused with “github.createIssue”, s.Current set", v)
	}
	judge(t, s, complete())
	if s.Task("t1").Status != plan.TaskFailed || s.Phase() != plan.Planning || s.Replans != 1 {
		t.Errorf("%s, %s; want s.Task(\"t1\").Status %v, s.Phase() %v, s.Replans 1",
			s.Task("t1").Status, s.Phase(), plan.TaskFailed, plan.Planning)
	}
}
