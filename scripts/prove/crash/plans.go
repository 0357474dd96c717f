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
	"github.com/countersign-run/countersign/shared/base/wait"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/fakegithub"
	"github.com/countersign-run/countersign/shared/tools/docker"
	"github.com/countersign-run/countersign/shared/tools/github"
)

// planScenarios are the scenarios of plans. The prompt contains the scenario's name, which tells the model the plan.
var planScenarios = []scenario{
	{"plan", longTTL, []step{start(0), decide("approve_once"), deliver}, planned, once, false, 0, 0},
	{"plan refined", longTTL, []step{start(0), refine, confirm, deliver}, anIssues, once, false, 0, 0},
	{"plan asked", longTTL, []step{start(0), decide("approve_once"), confirm, deliver}, planned, once, false, 0, 0},
	{"plan anew", longTTL, []step{start(0), decide("approve_once"), confirm, deliver}, anIssues, once, false, 0, 0},
	{"plan changed", longTTL, []step{start(0), decide("approve_once"), deliver}, anIssues, once, false, 0, 0},
	{"plan rejected", longTTL, []step{start(0), decide("reject"), deliver}, anIssues, never, false, 0, 0},
	{"plan cancelled", longTTL, []step{start(0), decide("approve_once"), cancel, deliver}, planned, either, true, 0, 0},
	{"plan late", longTTL, []step{start(0), inTime, lastly}, planned, either, true, 0, 3 * time.Second},
}

// openSession returns a function that requests a plan. The deadline is the same in each call, as for a client that
// retries.
func (t *trial) openSession(to *process) func(context.Context, string, ...string) (testkit.Answer, error) {
	return func(ctx context.Context, prompt string, header ...string) (testkit.Answer, error) {
		return t.at(to)(ctx, http.MethodPost, "/api/agent/plans", map[string]string{"prompt": prompt,
			"repoUrl":  t.env.cloud.URL + "/" + t.uid + "/web",
			"deadline": t.deadline.Format(time.RFC3339Nano)}, header...)
	}
}

// behind is the error of a worker's clock. With it, a session can have an earlier deadline than the API permits. The
// store's clock decides when the deadline has passed.
const behind = -5 * time.Minute

// limit sets the session's deadline, which stays the same in repeated requests.
func (t *trial) limit() {
	if t.deadline = planDeadline; t.scenario.within > 0 {
		t.deadline = time.Now().Add(t.scenario.within)
	}
}

// inTime confirms the plan, unless the session has already reached its deadline.
var inTime = step{"a yes before the deadline", (*trial).asked, func(t *trial, to *process) {
	if t.slow {
		return
	}
	a, err := t.at(to).Resolve(t.ctx, t.approval, "approve_once")
	want("a yes before the deadline", a, err, http.StatusOK, http.StatusConflict, http.StatusGone)
}}

// aMoment is the time from the delivery to the session's deadline. A worker takes about as long to reach the first
// effect, so the deadline falls into a tool call or between two.
const aMoment = 200 * time.Millisecond

// lastly delivers the messages aMoment before the deadline.
var lastly = step{"deliver at last", nil, func(t *trial, to *process) {
	proof.Must(wait.For(t.ctx, time.Until(t.deadline.Add(-aMoment))))
	t.env.worker = to
	proof.Must(t.env.deliver(t.ctx, to))
}}

// planDeadline is late enough for every run, whatever the clock error.
var planDeadline = time.Now().Add(48 * time.Hour)

// addRepository gives the user a GitHub account with a repository.
func (t *trial) addRepository(at *testkit.Deployment) error {
	t.env.cloud.GitHub.Add(fakegithub.Seed{Owner: t.uid, Name: "web", Files: map[string]string{readme: seeded,
		lockFile: "", manifest: "module example.com/web\n"},
		Branches: map[string]string{branch: "A change."}})
	t.check("in_progress", "")
	return at.LinkGitHub(t.ctx, t.uid, t.uid)
}

// refine requests another plan.
var refine = step{"refine", (*trial).asked, func(t *trial, to *process) {
	if t.slow {
		return
	}
	a, err := t.at(to)(t.ctx, http.MethodPost, "/api/agent/plans/"+t.runs[0]+"/refine",
		map[string]string{"refinementPrompt": "shorter"})
	// If a worker died after it had refined the plan, the next plan may already wait, or the worker is making it.
	want("refine", a, err, http.StatusOK, http.StatusAccepted, http.StatusConflict, http.StatusGone)
}}

// confirm approves the next pending approval: the next plan, or a call.
var confirm = step{"the next yes", (*trial).askedNext, func(t *trial, to *process) {
	if t.slow {
		return
	}
	a, err := t.at(to).Resolve(t.ctx, t.approval, "approve_once")
	want("the next yes", a, err, http.StatusOK)
}}

// askedNext reports whether a new approval is pending, and records it.
func (t *trial) askedNext() bool {
	a := t.view(0)
	if len(a.Approvals) > 0 && a.Approvals[0].ApprovalID != t.approval.ApprovalID && a.Approvals[0].Kind != "review" {
		t.approval = a.Approvals[0]
		return true
	}
	t.slow = a.Status == "failed"
	return t.slow
}

// byPatch is the end of a scenario's name in the prompt of a kind that patches a file.
const byPatch = " by a patch"

var itsTrial = regexp.MustCompile(`((?:github|docker)\.[a-zA-Z]+) (plan[a-z ]*) for ((user[0-9]+) run [0-9]+)`)
var itsCommit = regexp.MustCompile(` at the commit ([0-9a-f]{40})`)
var itsFile = regexp.MustCompile(`"sha":"([0-9a-f]{40})"`)
var itsContainer = regexp.MustCompile(`"id":"([0-9a-f]{64})"`)

// within returns the call in a container after the given number of answers, or nil after the last one. A second edit
// waits for its user, with a container that is still there when a paused worker wakes.
func (k kind) within(owner, name string, answered int) (string, map[string]any) {
	switch {
	case answered == 1 && k.tool == edit.tool:
		return docker.ReadFile, map[string]any{"path": readme}
	case answered == 1, answered == 2 && k.tool == edit.tool:
		return k.tool, k.planned(owner, name)
	case answered == 3 && k.tool == edit.tool:
		return k.tool, edited(name, name+", again")
	}
	return "", nil
}

// plansAnswer is the model of sessions. It returns false for other requests.
func plansAnswer(r fakegemini.Request) (fakegemini.Turn, bool) {
	if !r.Has("propose_plan") && !r.Has("reflect") {
		return fakegemini.Turn{}, false
	}
	s := sessionOf(r)
	name, args := s.next(r)
	if name != "propose_plan" && name != "reflect" {
		args["reasoning"] = "It is the task."
	}
	return fakegemini.Turn{Calls: []fakegemini.Call{{Name: name, Args: args}}}, true
}

// A session holds the parts of a request that the model of a planner session reads.
type session struct {
	does        kind
	scenario    string
	name, owner string
	told        string // the whole request
	again       bool   // a task has failed before this request
}

func sessionOf(r fakegemini.Request) session {
	b, err := json.Marshal(r.Contents)
	proof.Must(err)
	told := string(b)
	about := itsTrial.FindStringSubmatch(told)
	if about == nil {
		proof.Must(fmt.Errorf("a session has no known scenario: %s", told))
	}
	s := session{does: kind{tool: about[1]}, name: about[3], owner: about[4], told: told,
		again: strings.Contains(told, "It cannot be.")}
	s.scenario, s.does.patches = strings.CutSuffix(about[2], byPatch)
	if commit := itsCommit.FindStringSubmatch(told); commit != nil {
		s.does.commit = commit[1]
	}
	return s
}

// plan returns the arguments of propose_plan.
func (s session) plan() map[string]any {
	task := map[string]any{"title": "Open it", "goal": "It is open.", "tools": []string{s.does.tool},
		"effects": []string{s.does.tool}}
	tasks, grants := []any{task}, []any{}
	if strings.Contains(s.told, "shorter") {
		task["title"] = "Open"
	}
	if s.scenario != "plan asked" {
		grants = append(grants, map[string]any{"tool": s.does.tool, "target": s.does.bound(s.owner), "maxCalls": 1})
	}
	if s.waits() {
		task["tools"] = []string{github.WaitForChecks, s.does.tool}
	}
	if s.does.patches {
		task["tools"] = []string{"github.readFile", s.does.tool}
	}
	if s.does.inside() {
		task["tools"] = []string{create.tool, docker.ReadFile, s.does.tool}
		grants = append(grants, map[string]any{"tool": create.tool, "target": create.bound(s.owner), "maxCalls": 1})
	}
	if s.scenario == "plan anew" && s.again {
		task["title"] = "Open it after all"
	}
	if s.scenario == "plan changed" {
		look := map[string]any{"title": "Look", "goal": "It is seen.", "tools": []string{"github.readFile"}}
		tasks = []any{look, task}
	}
	return map[string]any{"tasks": tasks, "grants": grants}
}

// waits reports whether the session waits for checks before it acts.
func (s session) waits() bool { return strings.HasPrefix(s.scenario, "plan waits") }

// next returns the next call of the session's model.
func (s session) next(r fakegemini.Request) (name string, args map[string]any) {
	if r.Has("propose_plan") {
		return "propose_plan", s.plan()
	}
	return s.act(r)
}

// act returns the next call of a task: of its tools, or of reflect.
func (s session) act(r fakegemini.Request) (name string, args map[string]any) {
	done := len(r.Responses()) > 0
	if s.does.inside() {
		if !done {
			return create.tool, create.planned(s.owner, s.name)
		}
		if tool, args := s.does.within(s.owner, s.name, r.Answered()); args != nil {
			if in := itsContainer.FindStringSubmatch(s.told); in != nil {
				args["containerId"] = in[1]
				return tool, args
			}
		}
	}
	look := map[string]any{"owner": s.owner, "repo": "web", "path": readme}
	switch {
	case s.scenario == "plan anew" && !s.again:
		return "reflect", map[string]any{"is_task_complete": false, "failed": true, "reflection": "It cannot be."}
	case s.scenario == "plan changed" && strings.Contains(s.told, `\nLook\n`):
		if !done {
			return "github.readFile", look
		}
		return "reflect", map[string]any{"is_task_complete": true, "reflection": "It is a site.", "changes": []any{
			map[string]any{"op": "modify", "taskId": "t2", "reason": "To say it better.", "task": map[string]any{
				"title": "Open one", "goal": "It is open.", "tools": []string{s.does.tool},
				"effects": []string{s.does.tool}}}}}
	case s.waits() && !done:
		return github.WaitForChecks, map[string]any{"owner": s.owner, "repo": "web", "ref": branch}
	case s.waits() && r.Answered() == 1:
		return s.does.tool, s.does.planned(s.owner, s.name)
	case s.does.patches && !done:
		return "github.readFile", look
	case s.does.patches && r.Answered() == 1:
		args := s.does.planned(s.owner, s.name)
		if sha := itsFile.FindStringSubmatch(s.told); sha != nil {
			args["files"].([]any)[0].(map[string]any)["sha"] = sha[1]
		}
		return s.does.tool, args
	case !done:
		return s.does.tool, s.does.planned(s.owner, s.name)
	}
	return "reflect", map[string]any{"is_task_complete": true, "reflection": "It is open.", "result": "Done."}
}
