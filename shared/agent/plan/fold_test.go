package plan_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/testkit/figures"
)

// step is one input of a session.
type step func(*plan.Session) error

// longSession returns at least n steps of long sessions: tasks of 15 steps, each with a model answer, a call with its
// intent and outcome, and a reflection.
func longSession(t rapid.TB, n int) (steps []step) {
	t.Helper()
	event := func(e plan.Event) { steps = append(steps, func(s *plan.Session) error { return s.Apply(e) }) }
	var p plan.Plan
	for round := 0; len(steps) < n; round++ {
		for i := range plan.MaxTasks {
			id := fmt.Sprintf("t%d", round*plan.MaxTasks+i+1)
			one := task(id)
			one.ID = id
			p.Tasks = append(p.Tasks, one)
		}
		p.Repo, p.Deadline = repo, deadline
		name := fmt.Sprint(round)
		event(proposed(t, p, name))
		event(confirmed(name))
		for _, one := range p.Tasks[round*plan.MaxTasks:] {
			event(plan.Event{Started: &plan.Started{TaskID: one.ID}})
			for k := range 15 {
				steps = append(steps, func(s *plan.Session) error { s.Answered(); return nil })
				act := plan.Act{ID: fmt.Sprint(one.ID, "-", k), Tool: "github.createIssue", Effect: true, Grant: "g1",
					Args: json.RawMessage(`{"path":"a"}`)}
				for _, e := range []plan.Execution{plan.NotStarted, plan.Intent, plan.Succeeded} {
					act.Execution = e
					if act.Over = e == plan.Succeeded; act.Over {
						act.Observation = json.RawMessage(fmt.Sprintf(`{"n":%d}`, k))
					}
					heard := act
					steps = append(steps, func(s *plan.Session) error { s.Record(heard); return nil })
				}
				event(plan.Event{Reflected: &plan.TaskReflected{TaskID: one.ID, Step: k + 1}})
			}
			event(plan.Event{Finished: &plan.Finished{TaskID: one.ID, Status: plan.TaskCompleted}})
		}
	}
	return steps
}

func fold(t rapid.TB, steps []step) *plan.Session {
	s := plan.NewSession()
	for i, step := range steps {
		if err := step(s); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
	return s
}

// BenchmarkFold measures the cost of an event in a short session and in one of 4,000 events.
func BenchmarkFold(b *testing.B) {
	for _, n := range []int{500, 4000} {
		steps := longSession(b, 4000)[:n]
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				fold(b, steps)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/event")
		})
	}
}

// TestFoldCost checks that an event allocates as much late in a session as early: 4,000 events take less than
// twice what eight times 500 do. If each event copied the events before it, they would take eight times as much.
// BenchmarkFold measures the times.
func TestFoldCost(t *testing.T) {
	all := longSession(t, 4000)[:4000]
	bytes := func(n int) uint64 { return figures.Allocated(func() { fold(t, all[:n]) }) }
	short, long := bytes(500), bytes(4000)
	if long > 2*8*short {
		t.Errorf("500 events allocate %d bytes, 4,000 events %d", short, long)
	}
}

// TestPlanUnreadable checks that an unreadable plan ends the session. Later events cannot confirm anything.
func TestPlanUnreadable(t *testing.T) {
	s := plan.NewSession()
	e := plan.Event{Proposed: &plan.Proposed{Plan: json.RawMessage(`{"tasks":7}`), Hash: "h1", ApprovalID: "p1"}}
	apply(t, s, e)
	apply(t, s, confirmed("1"))
	if s.Status() != plan.StatusFailed || s.Phase() != plan.Broken || s.Why == "" || s.Proposal != nil {
		t.Errorf("status %s, waiting plan %v", s.Status(), s.Proposal)
	}
	if raw, err := s.RawPlan(); err != nil || raw != "" {
		t.Errorf("%s, %v; want raw empty", raw, err)
	}
}

// TestRawPlan checks RawPlan for a waiting plan (004-06), and after later events.
func TestRawPlan(t *testing.T) {
	s := plan.NewSession()
	if raw, err := s.RawPlan(); raw != "" || err != nil {
		t.Errorf("%q, %v; want raw empty", raw, err)
	}
	p := normal(t, bind(), threeTasks())
	apply(t, s, proposed(t, p, "1"))
	raw := func(want plan.Plan) {
		t.Helper()
		if got, err := s.RawPlan(); err != nil || got != string(canonical(t, want)) {
			t.Errorf("%v: %s", err, got)
		}
	}
	raw(p)
	edited := p
	edited.Grants = p.Grants[1:]
	apply(t, s, plan.Event{Confirmed: &plan.Confirmed{ApprovalID: "p1", Hash: "edited", Plan: canonical(t, edited)}})
	if !s.Confirmed.Edited || s.Confirmed.Hash != "edited" {
		t.Errorf("%+v", s.Confirmed)
	}
	raw(edited)
	apply(t, s, s.Begin()...)
	judge(t, s, complete(plan.Change{Op: plan.Obsolete, TaskID: "t2", Reason: "x"}))
	edited.Tasks = []plan.Task{p.Tasks[0], p.Tasks[2]}
	raw(edited)
	if s.Task("t2").Status != plan.TaskObsolete {
		t.Error(s.Task("t2").Status)
	}
}

// TestConfirmOtherPlan checks that a confirmation of other bytes than the waiting plan's is refused, and that the plan
// still waits.
func TestConfirmOtherPlan(t *testing.T) {
	p := normal(t, bind(), threeTasks())
	for name, c := range map[string]plan.Confirmed{
		"another hash":              {ApprovalID: "p2", Hash: "h1"},
		"an older approval":         {ApprovalID: "p1", Hash: "h2"},
		"no hash":                   {ApprovalID: "p2"},
		"an edit without a hash":    {ApprovalID: "p2", Plan: canonical(t, p)},
		"an edit that is no plan":   {ApprovalID: "p2", Hash: "e", Plan: json.RawMessage(`{"tasks":1}`)},
		"an edit with nothing left": {ApprovalID: "p2", Hash: "e", Plan: json.RawMessage(`{"tasks":[]}`)},
	} {
		t.Run(name, func(t *testing.T) {
			s := plan.NewSession()
			apply(t, s, proposed(t, p, "1"), plan.Event{Closed: &plan.Closed{ApprovalID: "p1", How: plan.Refined}},
				proposed(t, p, "2"))
			if err := s.Apply(plan.Event{Confirmed: &c}); err == nil || s.Status() != plan.StatusAwaiting {
				t.Errorf("%v, %s; want an error, s.Status() %v", err, s.Status(), plan.StatusAwaiting)
			}
		})
	}
}

// TestConfirmEditOfCompletedTask checks that a confirmation is refused if a completed task is missing or changed in the
// plan.
func TestConfirmEditOfCompletedTask(t *testing.T) {
	s := executing(t, threeTasks())
	judge(t, s, complete())
	apply(t, s, s.Begin()...)
	apply(t, s, s.GiveUp("no")...)
	p := normal(t, s.Bind(bind()), threeTasks())
	apply(t, s, proposed(t, p, "2"))
	changed := p
	changed.Tasks = append([]plan.Task{p.Tasks[0]}, p.Tasks[1:]...)
	changed.Tasks[0].Title = "Another"
	for _, tasks := range [][]plan.Task{p.Tasks[1:], changed.Tasks} {
		edited := p
		edited.Tasks = tasks
		yes := plan.Event{Confirmed: &plan.Confirmed{ApprovalID: "p2", Hash: "e", Plan: canonical(t, edited)}}
		if err := s.Apply(yes); err == nil {
			t.Errorf("a plan with %s was confirmed", tasks[0].Title)
		}
	}
}

// TestProposeEarlierPlan checks that proposing the confirmed plan again is a new revision if changes have applied
// since.
func TestProposeEarlierPlan(t *testing.T) {
	s := executing(t, threeTasks())
	judge(t, s, complete(plan.Change{Op: plan.Obsolete, TaskID: "t2", Reason: "x"}))
	old := proposed(t, normal(t, bind(), threeTasks()), "1")
	old.Proposed.ApprovalID = "p2"
	apply(t, s, old)
	if s.Revision != 2 {
		t.Errorf("revision %d", s.Revision)
	}
}
