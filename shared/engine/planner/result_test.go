package planner_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/engine/planner"
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
		if over.Status != plan.StatusDeadline || over.ErrorCode != string(plan.CodeDeadline) ||
			len(over.Artifacts) != 1 || over.ModelCalls != confirmed.ModelCalls || over.RawPlan != s.RawPlan ||
			over.PlanHash != s.PlanHash {
			t.Errorf("result %+v", over)
		}
		results(t, over)
		logged(t, over)
		again := view(t, start(t, p, planner.StartOptions{Prompt: "go on", ContinueFrom: s.SessionID}))
		if again.Status != plan.StatusAwaiting || len(again.Tasks) != 2 || again.Tasks[0].Title != "Open another" ||
			again.Tasks[1].Title != "Open the last" || len(again.Grants) != 0 || again.ModelCalls != 0 {
			t.Errorf("continued session: %+v", again)
		}
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
	for i, task := range s.Tasks {
		if task.Title != want[i].Title || task.Status != want[i].Status || task.Result != want[i].Result ||
			task.SessionID != s.SessionID {
			t.Errorf("task %s: %+v", want[i].Title, task)
		}
	}
	if len(s.Tasks) != len(want) {
		t.Errorf("%d tasks", len(s.Tasks))
	}
}

// logged checks the logged calls.
func logged(t *testing.T, s *planner.Session) {
	t.Helper()
	if len(s.Log) != 2 {
		t.Fatalf("log %+v", s.Log)
	}
	done, doubted := s.Log[0], s.Log[1]
	if done.TaskID != "t1" || done.Step != 1 || done.Reason != "It is wanted." || done.Action.Tool != "issue" ||
		string(done.Action.Args) != `{"owner":"acme","repo":"web","title":"Broken"}` || done.GrantID != "g1" ||
		string(done.Observation) != `{"html_url":"`+s.Artifacts[0]+`"}` || done.ExecutionStatus != plan.Succeeded {
		t.Errorf("the call that was done: %+v", done)
	}
	if doubted.TaskID != "t2" || doubted.ExecutionStatus != plan.Unknown || doubted.Seq <= done.Seq {
		t.Errorf("the call with an unknown outcome: %+v", doubted)
	}
}
