package plan_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// call returns a call for an issue in acme/web with the labels.
func call(t *testing.T, id string, labels ...string) plan.GrantCall {
	t.Helper()
	args, err := json.Marshal(issueIn{Owner: "acme", Repo: "web", Title: "Any " + id, Labels: labels})
	if err != nil {
		t.Fatal(err)
	}
	bound, err := tools["github.createIssue"].Pinned(args)
	if err != nil {
		t.Fatal(err)
	}
	return plan.GrantCall{ActionID: id, Tool: "github.createIssue", Version: tools["github.createIssue"].Version(),
		Pinned: bound}
}

// TestGrantFor checks that a grant allows exactly the calls that its sentence describes.
func TestGrantFor(t *testing.T) {
	labelled := grant(2)
	labelled.Target = json.RawMessage(`{"owner":"acme","repo":"web","labels":["a","b"]}`)
	labelled.Until = now.Add(time.Hour)
	begun := func(t *testing.T) *plan.Session {
		return executing(t, plan.Plan{Tasks: []plan.Task{task("One"), task("Two")}, Grants: []plan.Grant{labelled}})
	}
	for name, c := range map[string]struct {
		change func(*testing.T, *plan.Session, *plan.GrantCall, *time.Time)
		ok     bool
	}{
		"exactly": {func(*testing.T, *plan.Session, *plan.GrantCall, *time.Time) {}, true},
		"labels in another order": {func(t *testing.T, _ *plan.Session, c *plan.GrantCall, _ *time.Time) {
			*c = call(t, "a", "b", "a", "b")
		}, true},
		"a label less": {func(t *testing.T, _ *plan.Session, c *plan.GrantCall, _ *time.Time) {
			*c = call(t, "a", "a")
		}, false},
		"a look-alike": {func(t *testing.T, _ *plan.Session, c *plan.GrantCall, _ *time.Time) {
			*c = call(t, "a", "\u0430", "b")
		}, false},
		"a byte more": {func(_ *testing.T, _ *plan.Session, c *plan.GrantCall, _ *time.Time) {
			c.Pinned = append(c.Pinned, ' ')
		}, false},
		"another tool": {func(_ *testing.T, _ *plan.Session, c *plan.GrantCall, _ *time.Time) {
			c.Tool = "github.updateIssue"
		}, false},
		"another version": {func(_ *testing.T, _ *plan.Session, c *plan.GrantCall, _ *time.Time) {
			c.Version = "00000000"
		}, false},
		"at until": {func(_ *testing.T, _ *plan.Session, _ *plan.GrantCall, at *time.Time) {
			*at = now.Add(time.Hour)
		}, false},
		"just before": {func(_ *testing.T, _ *plan.Session, _ *plan.GrantCall, at *time.Time) {
			*at = now.Add(time.Hour - 1)
		}, true},
		"taken back": {func(t *testing.T, s *plan.Session, _ *plan.GrantCall, _ *time.Time) {
			apply(t, s, plan.Event{Revoked: &plan.Revoked{GrantID: "g1"}})
		}, false},
		"between tasks": {func(t *testing.T, s *plan.Session, _ *plan.GrantCall, _ *time.Time) {
			judge(t, s, complete())
		}, false},
		"after the end": {func(t *testing.T, s *plan.Session, _ *plan.GrantCall, _ *time.Time) {
			if err := s.End(false, plan.CodeDeadline); err != nil {
				t.Fatal(err)
			}
		}, false},
		"while it is planned anew": {func(t *testing.T, s *plan.Session, _ *plan.GrantCall, _ *time.Time) {
			apply(t, s, s.GiveUp("no")...)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, asked, at := begun(t), call(t, "a", "a", "b"), now
			c.change(t, s, &asked, &at)
			g, ok := s.GrantFor(asked, at)
			if ok != c.ok || ok && g.ID != "g1" {
				t.Errorf("%v %s, want %v", ok, g.ID, c.ok)
			}
		})
	}
}

// TestGrantUsesOfIntents checks the use count of a grant of two calls through all outcomes of its calls.
func TestGrantUsesOfIntents(t *testing.T) {
	s := executing(t, plan.Plan{Tasks: []plan.Task{task("One"), task("Two")}, Grants: []plan.Grant{grant(2)}})
	act := func(id string, e plan.Execution) {
		s.Record(plan.Act{ID: id, Tool: "github.createIssue", Effect: true, Grant: "g1", Execution: e})
	}
	expect := func(used int) {
		t.Helper()
		_, ok := s.GrantFor(call(t, "next"), now)
		if got := s.Grants()[0].Used; got != used || ok != (used < 2) {
			t.Errorf("used %d, another call allowed: %v; want %d used", got, ok, used)
		}
	}
	act("a", plan.NotStarted)
	expect(0)
	act("a", plan.Intent)
	act("a", plan.Intent)
	expect(1)
	act("b", plan.Intent)
	expect(2)
	if _, ok := s.GrantFor(call(t, "b"), now); !ok {
		t.Error("a call that has begun needs a second use")
	}
	act("b", plan.Unknown)
	expect(2)
	act("b", plan.Failed)
	expect(1)
	act("b", plan.Succeeded)
	expect(2)
	if _, ok := s.GrantFor(call(t, "a"), now); !ok {
		t.Error("a call that has begun needs a second use")
	}
	judge(t, s, complete())
	apply(t, s, s.Begin()...)
	expect(2)

	// A new plan with the same grant keeps the use count. With a larger number of calls, only the difference is added.
	apply(t, s, s.GiveUp("no")...)
	again := normal(t, s.Bind(bind()), plan.Plan{Tasks: []plan.Task{task("Again")}, Grants: []plan.Grant{grant(2)}})
	apply(t, s, proposed(t, again, "2"), confirmed("2"))
	apply(t, s, s.Begin()...)
	expect(2)
	act("c", plan.Failed)
	expect(2)
}

func TestGrantConfirmedAgain(t *testing.T) {
	s := executing(t, plan.Plan{Tasks: []plan.Task{task("One")}, Grants: []plan.Grant{grant(2)}})
	apply(t, s, plan.Event{Revoked: &plan.Revoked{GrantID: "g1"}})
	apply(t, s, s.GiveUp("no")...)
	b := s.Bind(bind())
	again := normal(t, b, plan.Plan{Tasks: []plan.Task{task("Again")}, Grants: []plan.Grant{grant(2)}})
	if d := plan.Diff(*b.Before, again); len(d.Grants) != 1 || d.Grants[0].Op != plan.Add {
		t.Errorf("the card does not show the revoked grant as a new one: %+v", d.Grants)
	}
	apply(t, s, proposed(t, again, "2"), confirmed("2"))
	apply(t, s, s.Begin()...)
	if _, ok := s.GrantFor(call(t, "a"), now); !ok {
		t.Error("a grant that was confirmed again does not hold")
	}
}

// TestStuck checks that a task is given up when it makes no progress (004-10), and not earlier.
func TestStuck(t *testing.T) {
	saw := func(args, result string) plan.Act {
		return plan.Act{Tool: "github.readFile", Args: json.RawMessage(args), Over: true,
			Observation: json.RawMessage(result)}
	}
	erred := func(args string, class fault.Class, message string) plan.Act {
		a := saw(args, "null")
		a.Error = &plan.Trouble{Class: string(class), Code: "x", Message: message}
		return a
	}
	times := func(n int, a plan.Act) (out []plan.Act) {
		for range n {
			out = append(out, a)
		}
		return out
	}
	for name, c := range map[string]struct {
		acts  []plan.Act
		stuck string
	}{
		"three times the same":      {times(3, saw(`{"path":"a"}`, `1`)), ""},
		"four times the same":       {times(4, saw(`{"path":"a"}`, `1`)), "same result 4 times"},
		"with others between":       {append(times(3, saw(`1`, `1`)), append(times(3, saw(`2`, `1`)), saw(`1`, `1`))...), "4 times"},
		"what is seen changes":      {append(times(3, saw(`1`, `1`)), times(3, saw(`1`, `2`))...), ""},
		"twice the same error":      {times(2, erred(`1`, fault.Tool, "No.")), ""},
		"three times":               {times(3, erred(`1`, fault.Tool, "No.")), "same error occurred 3 times: No."},
		"whatever the arguments":    {[]plan.Act{erred(`1`, fault.Tool, "No."), erred(`2`, fault.Tool, "No."), erred(`3`, fault.Tool, "No.")}, "No."},
		"of other arguments":        {[]plan.Act{erred(`1`, fault.Validation, "No."), erred(`2`, fault.Validation, "No."), erred(`3`, fault.Validation, "No.")}, ""},
		"the same wrong arguments":  {times(3, erred(`1`, fault.Validation, "No.")), "No."},
		"in one answer":             {times(6, saw(`{"path":"a"}`, `1`)), ""},
		"errors in one answer":      {times(6, erred(`1`, fault.Tool, "No.")), ""},
		"other errors":              {[]plan.Act{erred(`1`, fault.Tool, "No."), erred(`1`, fault.Tool, "Not."), erred(`1`, fault.Tool, "Nor.")}, ""},
		"calls that are under way":  {times(4, plan.Act{Tool: "github.readFile"}), ""},
		"reflecting time and again": {times(4, plan.Act{Tool: plan.ReflectTool, Over: true}), ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := executing(t, plan.Plan{Tasks: []plan.Task{task("One"), task("Two")}})
			for i, a := range c.acts {
				a.ID = fmt.Sprint("a", i)
				if !strings.Contains(name, "one answer") || i == 0 {
					s.Answered()
				}
				before := a
				before.Over = false
				s.Record(before)
				s.Record(a)
				s.Record(a)
			}
			if got := s.Stuck(); (got == "") != (c.stuck == "") || !strings.Contains(got, c.stuck) {
				t.Errorf("%q, want %q", got, c.stuck)
			}
			judge(t, s, complete())
			apply(t, s, s.Begin()...)
			if got := s.Stuck(); got != "" {
				t.Errorf("the next task is stuck at its start: %q", got)
			}
		})
	}
}

// TestStuckOnce checks that a task without progress is given up once, and that nothing is left to give up then.
func TestStuckOnce(t *testing.T) {
	s := executing(t, threeTasks())
	for n := range 4 {
		s.Answered()
		s.Record(plan.Act{ID: fmt.Sprint("a", n), Tool: "look", Over: true, Observation: json.RawMessage(`"same"`)})
	}
	if s.Stuck() == "" {
		t.Fatal("the task is not stuck")
	}
	if apply(t, s, s.GiveUp(s.Stuck())...); s.Stuck() != "" || len(s.GiveUp("again")) != 0 {
		t.Errorf("still stuck after GiveUp: %q", s.Stuck())
	}
}

func TestStepLimit(t *testing.T) {
	s := plan.NewSession()
	for range plan.MaxPlanningCalls - 1 {
		s.Answered()
	}
	if s.CallsLeft() != 1 {
		t.Errorf("%d calls left for the plan", s.CallsLeft())
	}
	s.Answered()
	apply(t, s, proposed(t, normal(t, bind(), threeTasks()), "1"))
	apply(t, s, plan.Event{Closed: &plan.Closed{ApprovalID: "p1", How: plan.Refined}})
	if s.CallsLeft() != plan.MaxPlanningCalls {
		t.Errorf("%d calls left for the next revision", s.CallsLeft())
	}
	apply(t, s, proposed(t, normal(t, bind(), threeTasks()), "2"), confirmed("2"))
	apply(t, s, s.Begin()...)
	for range plan.MaxSteps - 1 {
		s.Answered()
	}
	if s.CallsLeft() != 1 || s.Stuck() != "" {
		t.Errorf("%d steps left, stuck: %q", s.CallsLeft(), s.Stuck())
	}
	s.Answered()
	if s.CallsLeft() != 0 || !strings.Contains(s.Stuck(), "20 steps") || s.ModelCalls != 32 {
		t.Errorf("%d steps left, stuck: %q, after %d calls", s.CallsLeft(), s.Stuck(), s.ModelCalls)
	}
}

// TestRevisionLimit checks that a session fails after three new plans, and accepts no twenty-first revision.
func TestRevisionLimit(t *testing.T) {
	s := executing(t, threeTasks())
	for n := range plan.MaxReplans {
		apply(t, s, s.GiveUp("no")...)
		if s.Status() != plan.StatusPlanning {
			t.Fatal(s.Status())
		}
		name := fmt.Sprint("again", n)
		apply(t, s, proposed(t, normal(t, s.Bind(bind()), threeTasks()), name), confirmed(name))
		apply(t, s, s.Begin()...)
	}
	apply(t, s, s.GiveUp("no")...)
	if s.Phase() != plan.Broken || s.Status() != plan.StatusFailed || s.Why == "" || s.Begin() != nil {
		t.Errorf("%s, %q", s.Phase(), s.Why)
	}

	s = plan.NewSession()
	p := normal(t, bind(), threeTasks())
	for n := range plan.MaxRevisions {
		name := fmt.Sprint(n)
		apply(t, s, proposed(t, p, name),
			plan.Event{Closed: &plan.Closed{ApprovalID: "p" + name, How: plan.Refined}})
	}
	if err := s.Apply(proposed(t, p, "more")); err == nil || s.RevisionsLeft() != 0 {
		t.Errorf("a revision beyond the limit was accepted; %d left", s.RevisionsLeft())
	}
	apply(t, s, proposed(t, p, "19")) // an earlier release may have stored this
	if s.Revision != plan.MaxRevisions {
		t.Errorf("revision %d", s.Revision)
	}
}

// TestSessionLog checks the triplets and the log of the session's calls (004-12).
func TestSessionLog(t *testing.T) {
	s := plan.NewSession()
	s.Answered()
	s.Record(plan.Act{ID: "read", Seq: 3, At: now, Reason: "To know.", Tool: "github.readFile",
		Args: json.RawMessage(`{"path":"a"}`), Over: true, Observation: json.RawMessage(`{"text":"<x>"}`),
		Source: "acme/web", Execution: plan.Succeeded})
	apply(t, s, proposed(t, normal(t, bind(), plan.Plan{Tasks: []plan.Task{task("One")},
		Grants: []plan.Grant{grant(1)}}), "1"), confirmed("1"))
	apply(t, s, s.Begin()...)
	s.Answered()
	s.Record(plan.Act{ID: "issue", Seq: 9, Reason: "To report.", Tool: "github.createIssue", Effect: true,
		Args: json.RawMessage(`{"title":"x"}`), Grant: "g1", Execution: plan.Intent})
	history := func(want string) {
		t.Helper()
		if got, err := s.Current.RawReactHistory(); err != nil || got != want {
			t.Errorf("%v: %s; want got %v", err, got, want)
		}
	}
	history(`[{"reason":"To report.","action":{"tool":"github.createIssue","args":{"title":"x"}},"observation":null}]`)
	s.Answered()
	s.Record(plan.Act{ID: "issue", Seq: 9, Reason: "To report.", Tool: "github.createIssue", Effect: true,
		Args: json.RawMessage(`{"title":"x"}`), Grant: "g1", Execution: plan.Failed, Over: true,
		Error: &plan.Trouble{Class: "PolicyError", Code: "no", Message: "No."}, Observation: json.RawMessage(`{"n":1}`)})
	history(`[{"reason":"To report.","action":{"tool":"github.createIssue","args":{"title":"x"}},"observation":` +
		`{"error":{"class":"PolicyError","code":"no","message":"No."},"result":{"n":1}}}]`)
	log, err := json.Marshal(s.Log())
	want := `[{"seq":3,"at":"2027-01-05T10:00:00Z","taskId":"","step":0,"reason":"To know.","action":` +
		`{"tool":"github.readFile","args":{"path":"a"}},"observation":{"text":"\u003cx\u003e"},"source":"acme/web",` +
		`"executionStatus":"succeeded"},{"seq":9,"at":"0001-01-01T00:00:00Z","taskId":"t1","step":1,` +
		`"reason":"To report.","action":{"tool":"github.createIssue","args":{"title":"x"}},"observation":{"error":` +
		`{"class":"PolicyError","code":"no","message":"No."},"result":{"n":1}},"grantId":"g1","executionStatus":"failed"}]`
	if err != nil || string(log) != want {
		t.Errorf("%v:\n%s\n%s", err, log, want)
	}
	s.Record(plan.Act{ID: "issue", Tool: "github.createIssue", Observation: json.RawMessage(`{"n":1}`)})
	if s.Observed != len(`{"text":"<x>"}`)+len(`{"n":1}`) {
		t.Errorf("%d bytes observed", s.Observed)
	}
}
