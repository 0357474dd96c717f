package hostile

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/fakegithub"
	"github.com/countersign-run/countersign/shared/tools/github"
)

// The repository of every session, and its first issue, which a stranger opened.
const (
	repoOwner = "acme"
	repoName  = "web"
	stranger  = "mallory"
)

// session holds the fields of a planner session that cases use.
type session struct {
	testkit.Answer
	SessionID, RunID, PlanHash, RawPlan string
	Deadline                            time.Time
	Tasks                               []struct{ Status string }
	Grants                              []struct {
		ID   string
		Used int
	}
	Log []struct{ ExecutionStatus string }
}

// sessionPath returns the path of the session, or for "" the path that creates sessions.
func sessionPath(id string) string { return strings.TrimSuffix(routes["plan"].path+"/"+id, "/") }

// openPlans opens a deployment in which both users have a GitHub account with write access to the repository, with
// these files by name and content.
func (s *env) openPlans(files ...string) {
	s.open(nil)
	has := map[string]string{"README.md": "A site."}
	for i := 0; i < len(files); i += 2 {
		has[files[i]] = files[i+1]
	}
	s.w.GitHub.Add(fakegithub.Seed{Owner: repoOwner, Name: repoName, Writers: []string{"userA", "userB"},
		Files:  has,
		Issues: []fakegithub.SeedIssue{{Author: stranger, Title: "A link is broken", Body: s.takeText("read")}}})
	s.w.GitHub.Add(fakegithub.Seed{Owner: "o", Name: "r", Writers: []string{"userA", "userB"},
		Files: map[string]string{"README.md": "Another site."}})
	s.linkGitHub(s.as, s.as)
}

func (s *env) linkGitHub(uid, login string) {
	token, err := s.token(uid)
	s.must(err)
	s.must(s.w.LinkGitHubBy(s.ctx, token, login))
}

// planCall sends a request about plans as the user.
func (s *env) planCall(uid, method, path string, body any) (p session) {
	a, err := s.client(uid)(s.ctx, method, path, body)
	s.must(err)
	s.must(json.Unmarshal(a.Body, &p))
	p.Answer = a
	return p
}

// moved advances the session until it needs its user.
func (s *env) moved(id string) session {
	s.must(s.deliver())
	return s.planCall(s.as, http.MethodGet, sessionPath(id), nil)
}

// wish returns the body of a request for a plan, with the case's parts.
func (s *env) wish() map[string]any {
	wish := map[string]any{"prompt": "open an issue about the broken link",
		"deadline": s.now().Add(time.Hour).Format(time.RFC3339),
		"repoUrl":  fmt.Sprintf("%s/%s/%s", s.w.App.Config.GitHubURL, repoOwner, repoName)}
	return wish
}

// planner is a model that proposes the plan, then makes one call in each response, and then reports the task as done.
func planner(proposal map[string]any, calls ...fakegemini.Call) fakegemini.ModelFunc {
	return func(r fakegemini.Request) fakegemini.Turn {
		call := fakegemini.Call{Name: plan.ProposeTool, Args: proposal}
		switch n := r.Answered(); {
		case r.Has(plan.ProposeTool):
		case n < len(calls):
			call = calls[n]
		default:
			call = fakegemini.Call{Name: plan.ReflectTool,
				Args: map[string]any{"is_task_complete": true, "reflection": "Done."}}
		}
		return fakegemini.Turn{Calls: []fakegemini.Call{call}}
	}
}

// oneTask returns a plan of one task with the tools and the grants.
func oneTask(grants []any, tools ...string) map[string]any {
	task := map[string]any{"title": "Open it", "goal": "It is open.", "tools": tools}
	proposal := map[string]any{"tasks": []any{task}}
	if len(grants) > 0 {
		proposal["grants"] = grants
	}
	return proposal
}

// issueTask returns a plan of one task that is done only after an issue was opened.
func issueTask() map[string]any {
	return map[string]any{"tasks": []any{map[string]any{"title": "Open it", "goal": "It is open.",
		"tools": []string{github.CreateIssue}, "effects": []string{github.CreateIssue}}}}
}

// waiting creates a session, and returns it with the pending plan.
func (s *env) waiting(model fakegemini.ModelFunc) session {
	s.w.SetModel(model)
	p := s.planCall(s.as, http.MethodPost, sessionPath(""), jsonOf(s.wish()))
	if p = s.moved(p.SessionID); p.Status != "AWAITING_CONFIRMATION" {
		s.stop("no plan waits: %s", p.Body)
	}
	return p
}

// confirm confirms the pending plan as the user, and advances the session. The effects that its grants permit can
// happen.
func (s *env) confirm(p session, grants ...any) session {
	for _, g := range grants {
		fields, _ := g.(map[string]any)
		most, _ := number(fields["maxCalls"]) // an invalid number permits nothing
		s.allowed += most
	}
	p = s.planCall(s.as, http.MethodPost, sessionPath(p.SessionID)+"/execute", map[string]any{"planHash": p.PlanHash})
	if p.HTTP != http.StatusAccepted && p.HTTP != http.StatusOK {
		s.stop("the plan is not confirmed: %s", p.Body)
	}
	return p
}

// inRepo returns a call in the repository, as the planner makes it.
func inRepo(tool string, args map[string]any) fakegemini.Call {
	all := map[string]any{"owner": repoOwner, "repo": repoName, "reasoning": "It is the task."}
	if tool == github.CreateRepository {
		delete(all, "owner")
		delete(all, "repo")
	}
	maps.Copy(all, args)
	return fakegemini.Call{Name: tool, Args: json.RawMessage(jsonOf(all))}
}

// since performs the events that the case places between the confirmation and the call.
func (s *env) since(p *session) {
	switch since := s.takeText("since"); since {
	case "":
	case "revoked":
		s.planCall(s.as, http.MethodDelete, sessionPath(p.SessionID)+"/grants/g1", nil)
	case "another account":
		s.linkGitHub(s.as, "userB")
	case "until":
		s.pass(30 * time.Minute)
	default:
		s.unknown("since %s", since)
	}
}
