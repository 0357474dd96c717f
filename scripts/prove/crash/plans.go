package crash

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/fakegithub"
	"github.com/countersign-run/countersign/shared/testkit/invariants"
	"github.com/countersign-run/countersign/shared/tools/github"
)

// The kinds whose runs are sessions of the planner, each in a repository of its user's own.
var (
	issue  = kind{name: "issue of a plan", tool: github.CreateIssue, mode: "draft", plans: true}
	pull   = kind{name: "pull request of a plan", tool: github.CreatePullRequest, mode: "draft", plans: true}
	commit = kind{name: "commit of a plan", tool: github.CommitFiles, mode: "draft", plans: true}
)

var (
	planned  = func(k kind) bool { return k.plans }
	anIssues = func(k kind) bool { return k.tool == issue.tool } // how a session ends does not depend on its tool
)

// branch is the one that the repositories have beside main.
const branch = "fix"

// bound returns the arguments of a call of the kind that are not free text, which a grant names, and planned all.
func (k kind) bound(owner string) map[string]any {
	in := map[string]any{"owner": owner, "repo": "web"}
	switch k.tool {
	case pull.tool:
		in["head"], in["base"] = branch, "main"
	case commit.tool:
		in["branch"], in["files"] = branch, []any{map[string]any{"path": "README.md"}}
	}
	return in
}

func (k kind) planned(owner, name string) map[string]any {
	in := k.bound(owner)
	if k.tool == commit.tool {
		in["message"], in["files"] = name, []any{map[string]any{"path": "README.md", "content": name}}
		return in
	}
	in["title"], in["body"] = name, "hello"
	return in
}

// The walks of plans. What a plan is about is said by the walk's name, which the model reads in the prompt.
var planWalks = []walk{
	{"plan", longTTL, []step{start(0), decide("approve_once"), deliver}, planned, once, false, 0},
	{"plan refined", longTTL, []step{start(0), refine, confirm, deliver}, anIssues, once, false, 0},
	{"plan asked", longTTL, []step{start(0), decide("approve_once"), confirm, deliver}, planned, once, false, 0},
	{"plan anew", longTTL, []step{start(0), decide("approve_once"), confirm, deliver}, anIssues, once, false, 0},
	{"plan changed", longTTL, []step{start(0), decide("approve_once"), deliver}, anIssues, once, false, 0},
	{"plan rejected", longTTL, []step{start(0), decide("reject"), deliver}, anIssues, never, false, 0},
	{"plan cancelled", longTTL, []step{start(0), decide("approve_once"), cancel, deliver}, planned, either, true, 0},
}

// openSession returns what requests a plan; its deadline is the same each time, as a client that tries again has it.
func (t *trial) openSession(to *process) func(context.Context, string, ...string) (testkit.Answer, error) {
	return func(ctx context.Context, prompt string, header ...string) (testkit.Answer, error) {
		return t.at(to)(ctx, http.MethodPost, "/api/agent/plans", map[string]string{"prompt": prompt,
			"repoUrl":  t.env.cloud.URL + "/" + t.uid + "/web",
			"deadline": planDeadline.Format(time.RFC3339)}, header...)
	}
}

// committed returns the commits that the trial's branch has got. GitHub does not say of which action each is: the
// handle of the action's intent does.
func (t *trial) committed() (all []invariants.Effect) {
	begun, err := invariants.Handles(t.ctx, t.env.store, t.runs[0])
	proof.Must(err)
	for _, c := range t.env.cloud.GitHub.Commits(t.uid, "web", branch) {
		if !strings.HasPrefix(c.Message, t.uid) {
			continue // it was there before
		}
		e := invariants.Effect{UID: t.uid, Agrees: func(args json.RawMessage) error {
			var want github.NewCommit
			if err := json.Unmarshal(args, &want); err != nil {
				return err
			}
			if c.Message != want.Message || c.Files["README.md"] != want.Files[0].Content {
				return fmt.Errorf("the commit is %q, with %q", c.Message, c.Files)
			}
			return nil
		}}
		for handle, action := range begun {
			if strings.Contains(handle, `"sha":"`+c.SHA+`"`) {
				e.ActionID = action
			}
		}
		all = append(all, e)
	}
	return all
}

// planDeadline is far enough ahead for every run, and for every clock.
var planDeadline = time.Now().Add(48 * time.Hour)

// addRepository gives the user an account at GitHub with a repository.
func (t *trial) addRepository(at *testkit.Deployment) error {
	t.env.cloud.GitHub.Add(fakegithub.Seed{Owner: t.uid, Name: "web", Files: map[string]string{"README.md": "A site."},
		Branches: map[string]string{branch: "A change."}})
	return at.LinkGitHub(t.ctx, t.uid, t.uid)
}

// refine has another plan made.
var refine = step{"refine", (*trial).asked, func(t *trial, to *process) {
	if t.slow {
		return
	}
	a, err := t.at(to)(t.ctx, http.MethodPost, "/api/agent/plans/"+t.runs[0]+"/refine",
		map[string]string{"refinementPrompt": "shorter"})
	// Where it was refined before it died, the next plan may wait already, or is made.
	want("refine", a, err, http.StatusOK, http.StatusAccepted, http.StatusConflict, http.StatusGone)
}}

// confirm says yes to what is asked next: the next plan, or a call.
var confirm = step{"the next yes", (*trial).askedNext, func(t *trial, to *process) {
	if t.slow {
		return
	}
	a, err := t.at(to).Resolve(t.ctx, t.approval, "approve_once")
	want("the next yes", a, err, http.StatusOK)
}}

// askedNext reports whether another approval than the one before is requested, and records it.
func (t *trial) askedNext() bool {
	a := t.look(0)
	if len(a.Approvals) > 0 && a.Approvals[0].ApprovalID != t.approval.ApprovalID && a.Approvals[0].Kind != "review" {
		t.approval = a.Approvals[0]
		return true
	}
	t.slow = a.Status == "failed"
	return t.slow
}

var itsTrial = regexp.MustCompile(`(github\.[a-zA-Z]+) (plan[a-z ]*) for ((user[0-9]+) run [0-9]+)`)

// plansAnswer is the model of sessions; false for what is none.
func plansAnswer(r fakegemini.Request) (fakegemini.Turn, bool) {
	if !r.Has("propose_plan") && !r.Has("reflect") {
		return fakegemini.Turn{}, false
	}
	b, err := json.Marshal(r.Contents)
	proof.Must(err)
	told := string(b)
	about := itsTrial.FindStringSubmatch(told)
	if about == nil {
		proof.Must(fmt.Errorf("a session is asked about nothing: %s", told))
	}
	does, walk, name, owner := kind{tool: about[1]}, about[2], about[3], about[4]
	call := func(tool string, args map[string]any) (fakegemini.Turn, bool) {
		if tool != "propose_plan" && tool != "reflect" {
			args["reasoning"] = "It is the task."
		}
		return fakegemini.Turn{Calls: []fakegemini.Call{{Name: tool, Args: args}}}, true
	}
	again := strings.Contains(told, "It cannot be.") // a task has failed before
	if r.Has("propose_plan") {
		task := map[string]any{"title": "Open it", "goal": "It is open.", "tools": []string{does.tool},
			"effects": []string{does.tool}}
		plan := map[string]any{"tasks": []any{task}}
		if strings.Contains(told, "shorter") {
			task["title"] = "Open"
		}
		if walk != "plan asked" {
			plan["grants"] = []any{map[string]any{"tool": does.tool, "target": does.bound(owner), "maxCalls": 1}}
		}
		if walk == "plan anew" && again {
			task["title"] = "Open it after all"
		}
		if walk == "plan changed" {
			look := map[string]any{"title": "Look", "goal": "It is seen.", "tools": []string{"github.readFile"}}
			plan["tasks"] = []any{look, task}
		}
		return call("propose_plan", plan)
	}
	done := len(r.Responses()) > 0
	switch {
	case walk == "plan anew" && !again:
		return call("reflect", map[string]any{"is_task_complete": false, "failed": true, "reflection": "It cannot be."})
	case walk == "plan changed" && strings.Contains(told, `\nLook\n`):
		if !done {
			return call("github.readFile", map[string]any{"owner": owner, "repo": "web", "path": "README.md"})
		}
		return call("reflect", map[string]any{"is_task_complete": true, "reflection": "It is a site.", "changes": []any{
			map[string]any{"op": "modify", "taskId": "t2", "reason": "To say it better.", "task": map[string]any{
				"title": "Open one", "goal": "It is open.", "tools": []string{does.tool},
				"effects": []string{does.tool}}}}})
	case !done:
		return call(does.tool, does.planned(owner, name))
	}
	return call("reflect", map[string]any{"is_task_complete": true, "reflection": "It is open.", "result": "Done."})
}
