package planner_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/engine/planner"
	"github.com/countersign-run/countersign/shared/testkit/fields"
)

const threeTasks = `{"tasks":[` +
	`{"title":"Open it","goal":"It is open.","tools":["issue"],"effects":["issue"]},` +
	`{"title":"Open another","goal":"It is open.","tools":["issue"],"effects":["issue"]},` +
	`{"title":"Open the last","goal":"It is open.","tools":["issue"],"effects":["issue"]}],` +
	`"grants":[{"tool":"issue","target":{"owner":"acme","repo":"web"},"maxCalls":3}]}`

// TestResult has a session reach its deadline with one task done, one task whose issue may or may not be open, and one
// task that was never started. The result reports each task and has the whole log, without another model call. A
// session that continues from there is proposed without the finished task (004-14).
func TestResult(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, move := newPlanner(t, call("propose_plan", threeTasks),
			call("issue", `{"owner":"acme","repo":"web","title":"Broken","reasoning":"It is wanted."}`),
			call("reflect", `{"is_task_complete":true,"reflection":"It is open.","result":"Issue 1."}`),
			call("issue", `{"owner":"acme","repo":"web","title":"In doubt","reasoning":"It is wanted too."}`))
		ctx := context.Background()
		s := view(t, start(t, p, planner.StartOptions{}))
		if _, err := p.Confirm(ctx, planner.ExecuteOptions{UID: "ana", SessionID: s.SessionID,
			PlanHash: s.PlanHash}); err != nil {
			t.Fatal(err)
		}
		move()
		confirmed := now(t, p, s)
		if confirmed.Status != plan.StatusExecuting || len(confirmed.Log) != 2 ||
			confirmed.Log[1].ExecutionStatus != plan.Unknown {
			t.Fatalf("before the deadline: %+v", confirmed)
		}
		time.Sleep(2 * time.Hour)
		if _, err := p.Loop.Sweep(ctx); err != nil {
			t.Fatal(err)
		}
		move()
		over := now(t, p, s)
		fields.Check(t, *over, planner.Session{Status: plan.StatusDeadline, ErrorCode: string(plan.CodeDeadline),
			ModelCalls: confirmed.ModelCalls, RawPlan: s.RawPlan, PlanHash: s.PlanHash})
		if len(over.Artifacts) != 1 {
			t.Fatalf("artifacts %q; want one", over.Artifacts)
		}
		results(t, over)
		logged(t, over)
		again := view(t, start(t, p, planner.StartOptions{Prompt: "go on", ContinueFrom: s.SessionID}))
		proposed(t, again, "Open another", "Open the last")
	})
}

func now(t *testing.T, p *planner.Planner, s *planner.Session) *planner.Session {
	t.Helper()
	v, err := p.Get(t.Context(), "ana", s.SessionID)
	if err != nil {
		t.Fatal(err)
	}
	return view(t, v)
}

// results checks the reported tasks.
func results(t *testing.T, s *planner.Session) {
	t.Helper()
	want := []planner.Task{{Title: "Open it", Status: plan.TaskCompleted, Result: "Issue 1."},
		{Title: "Open another", Status: plan.TaskExecuting}, {Title: "Open the last", Status: plan.TaskPending}}
	if len(s.Tasks) != len(want) {
		t.Fatalf("%d tasks; want %d", len(s.Tasks), len(want))
	}
	for i, task := range s.Tasks {
		want[i].SessionID = s.SessionID
		fields.Check(t, task, want[i])
	}
	if s.Tasks[1].Result != "" || s.Tasks[2].Result != "" {
		t.Errorf("results %q and %q of open tasks; want none", s.Tasks[1].Result, s.Tasks[2].Result)
	}
}

// logged checks the logged calls.
func logged(t *testing.T, s *planner.Session) {
	t.Helper()
	if len(s.Log) != 2 {
		t.Fatalf("log %+v", s.Log)
	}
	done, doubted := s.Log[0], s.Log[1]
	fields.Check(t, done.LogEntry, plan.LogEntry{TaskID: "t1", Step: 1, GrantID: "g1", ExecutionStatus: plan.Succeeded,
		Triplet: plan.Triplet{Reason: "It is wanted.",
			Action:      plan.Action{Tool: "issue", Args: []byte(`{"owner":"acme","repo":"web","title":"Broken"}`)},
			Observation: []byte(`{"html_url":"` + s.Artifacts[0] + `"}`)}})
	if doubted.TaskID != "t2" || doubted.ExecutionStatus != plan.Unknown || doubted.Seq <= done.Seq {
		t.Errorf("the call with an unknown outcome: %+v", doubted)
	}
}
