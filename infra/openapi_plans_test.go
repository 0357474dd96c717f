package infra_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/engine/planner"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/fakegithub"
)

type openedIssue struct {
	Owner string `json:"owner"`
	Repo  string `json:"repo"`
	Label string `json:"label"`
	Title string `json:"title"`
}

// addIssue adds an effect to the planner that a plan can be granted.
func (s *stand) addIssue() {
	l := s.App.API.Loop
	l.Tools["issue"] = tool.Define(tool.Def[openedIssue, openedIssue]{Name: "issue", Description: "Opens an issue.",
		SideEffect: true, Pinned: func(in openedIssue) any {
			return map[string]string{"owner": in.Owner, "repo": in.Repo, "label": in.Label}
		},
		Preview: func(in openedIssue) tool.Preview { return tool.Preview{Title: "Open " + in.Title} },
		Execute: func(_ context.Context, _ tool.Call, in openedIssue) (openedIssue, error) { return in, nil }})
	agent := l.Agents["planner"]
	agent.Tools = append([]string{"issue"}, agent.Tools...)
}

// planning returns a model that proposes a different plan of one task each time, and executes it.
func planning() fakegemini.ModelFunc {
	var asked atomic.Int64
	return func(r fakegemini.Request) fakegemini.Turn { return nextStep(r, asked.Add(1)) }
}

func nextStep(r fakegemini.Request, n int64) fakegemini.Turn {
	call := func(name string, args map[string]any) fakegemini.Turn {
		return fakegemini.Turn{Calls: []fakegemini.Call{{Name: name, Args: args}}}
	}
	issue := func(label string) map[string]any {
		return map[string]any{"owner": "acme", "repo": "web", "label": label}
	}
	grant := func(label string) map[string]any {
		return map[string]any{"tool": "issue", "target": issue(label), "maxCalls": 1}
	}
	switch {
	case r.Has("propose_plan"):
		return call("propose_plan", map[string]any{"questions": []string{"Which label?"},
			"tasks": []any{map[string]any{"title": fmt.Sprint("Open it, ", n), "goal": "It is open.",
				"tools": []string{"issue"}, "effects": []string{"issue"}}},
			"grants": []any{grant("bug"), grant("idea")}})
	case len(r.Responses()) == 0:
		args := issue("bug")
		args["title"], args["reasoning"] = "Broken", "It is wanted."
		return call("issue", args)
	}
	return call("reflect", map[string]any{"is_task_complete": true, "reflection": "It is open."})
}

func (s *stand) wish(t *testing.T, more map[string]any) string {
	body := map[string]any{"prompt": "Open an issue.", "repoUrl": s.App.Config.GitHubURL + "/acme/web",
		"deadline": s.now().Add(time.Hour).UTC().Format(time.RFC3339)}
	for k, v := range more {
		body[k] = v
	}
	return inJSON(t, body)
}

// plans creates sessions, refines and confirms their plans, and runs one.
func plans(t *testing.T, d *described) {
	s := d.open(t, nil, "MAX_RUNS_PER_MINUTE=1", "FUNCTION_CONCURRENCY=4")
	s.addIssue()
	s.SetModel(planning())
	s.GitHub.Add(fakegithub.Seed{Owner: "acme", Name: "web", Files: map[string]string{"README.md": "A site."}})
	for _, uid := range []string{"ada", "eve"} {
		s.want(t, 403, ask{op: "startPlanning", uid: uid, body: s.wish(t, nil)})
		if err := s.LinkGitHub(t.Context(), uid, uid); err != nil {
			t.Fatal(err)
		}
	}
	start := ask{op: "startPlanning", body: s.wish(t, nil), header: []string{"Idempotency-Key", "one"}}
	var made planner.Session
	s.want(t, 202, start).into(t, &made)
	one := []string{made.SessionID}
	refine := ask{op: "refinePlan", params: one, body: `{"refinementPrompt":"Smaller."}`}
	execute := ask{op: "executePlan", params: one, body: `{"planHash":"0"}`}
	s.want(t, 410, refine) // the plan is being made
	s.want(t, 410, execute)
	s.deliver(t)
	s.want(t, 200, start)
	s.want(t, 409, ask{op: "startPlanning", header: start.header, body: s.wish(t, map[string]any{"locale": "de"})})
	s.want(t, 404, ask{op: "startPlanning", uid: "eve", body: s.wish(t, map[string]any{"threadId": nobody})})
	s.want(t, 429, ask{op: "startPlanning", body: start.body})
	s.want(t, 409, execute)
	s.want(t, 409, ask{op: "refinePlan", params: one, body: `{"refinementPrompt":"Smaller.","planHash":"0"}`})
	for range plan.MaxRevisions - 1 {
		s.want(t, 202, refine)
		s.deliver(t)
	}
	s.want(t, 429, refine)
	s.want(t, 200, ask{op: "plan", params: one}).into(t, &made)
	execute.body = inJSON(t, map[string]any{"planHash": made.PlanHash, "strict": true})
	s.want(t, 202, execute)
	revoke := ask{op: "revokeGrant", params: append(one, made.Grants[1].ID)}
	s.want(t, 200, revoke)
	s.deliver(t)
	s.want(t, 200, execute)
	s.want(t, 200, ask{op: "executePlan", params: one, body: execute.body,
		header: []string{"Accept", "application/x-ndjson"}})
	s.want(t, 200, revoke) // it is revoked already
	s.want(t, 409, ask{op: "revokeGrant", params: append(one, made.Grants[0].ID)})
	s.want(t, 200, ask{op: "plans"})
	s.want(t, 200, ask{op: "planReviews", params: one})
	s.want(t, 200, ask{op: "plan", params: one}).into(t, &made)
	if made.Status != plan.StatusCompleted || len(made.Log) != 1 {
		t.Errorf("the session ended as %+v", made)
	}
	s.streamed(t, execute)
}

// streamed makes a user follow the maximum number of sessions.
func (s *stand) streamed(t *testing.T, execute ask) {
	t.Helper()
	s.shift.Add(int64(2 * time.Minute)) // so that another session can begin
	var open planner.Session
	s.want(t, 202, ask{op: "startPlanning", body: s.wish(t, nil)}).into(t, &open)
	if _, err := testkit.Stream(t.Context(), direct, s.Base, s.signIn(t, "ada"), "GET",
		s.ops["runEvents"].at(open.RunID), nil, func(testkit.Line) bool {
			execute.header = []string{"Accept", "application/x-ndjson"}
			s.want(t, 429, execute)
			return false
		}); err != nil {
		t.Fatal(err)
	}
}
