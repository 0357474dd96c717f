package hostile

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/tools/github"
)

// planning runs a case of http:plan: a request about a plan that must be refused, or a session in which something
// fails.
func planning(s *env) got {
	switch {
	case s.c.Input["deadline"] == "passes in the middle of a tool call":
		s.takeText("deadline")
		return s.lateInTool()
	case s.has("rawPlan"):
		return s.brokenPlan(s.takeText("rawPlan"))
	case s.has("refinePlan"), s.has("confirm"), s.has("editedPlan"), s.has("execute"), s.has("refine"),
		s.has("revoke"):
		return s.aboutPlan()
	}
	s.open(nil, "GITHUB_URL=https://github.com")
	send := func(wish any) testkit.Answer {
		return s.call(s.as, http.MethodPost, sessionPath(""), jsonOf(wish))
	}
	wish := s.wish()
	if a := send(wish); a.Error.Class != "AuthError" { // only the missing account may be the reason for the refusal
		s.stop("a wish that is fine is answered %s", a.Body)
	}
	for name := range s.c.Input {
		if v, ok := s.take(name); ok && name != "as" {
			wish[name] = v
		}
	}
	return gotOf(send(wish))
}

// aboutPlan sends a request about a plan that waits or was confirmed.
func (s *env) aboutPlan() got {
	s.openPlans()
	p := s.waiting(planner(oneTask(nil, github.CreateIssue)))
	path, yes := sessionPath(p.SessionID), map[string]any{"planHash": p.PlanHash}
	uid, method := s.as, http.MethodPost
	var body any = yes
	for _, name := range slices.Sorted(maps.Keys(s.left)) {
		v, _ := s.take(name)
		switch said := textOf(v); {
		case name == "refinePlan" && said == "after confirm":
			s.confirm(p)
			path, body = path+"/refine", map[string]any{"refinementPrompt": "another one"}
		case name == "confirm" && said == "by another user":
			uid, path = "userB", path+"/execute"
		case name == "editedPlan":
			path, yes[name] = path+"/execute", v
		case name == "execute":
			path, body = path+"/execute", v
		case name == "refine":
			path, body = path+"/refine", v
		case name == "revoke":
			method, path, body = http.MethodDelete, path+"/grants/"+said, nil
		default:
			s.unknown("%s: %v", name, v)
		}
	}
	if body != nil {
		body = jsonOf(body)
	}
	a := s.planCall(uid, method, path, body)
	if s.sameAsMissing(a.Answer); a.HTTP >= 400 {
		if now := s.moved(p.SessionID); now.Status == "EXECUTING" && s.c.Input["refinePlan"] == nil {
			s.wrong("a request that was refused has confirmed the plan")
		}
	}
	return gotOf(a.Answer)
}

// brokenPlan replaces the stored plan with an invalid one, and confirms it as the user.
func (s *env) brokenPlan(raw string) got {
	s.openPlans()
	p := s.waiting(planner(oneTask(nil, github.CreateIssue)))
	var doc map[string]any
	s.change(document.RunPath(p.RunID), &doc, func() {
		if !replacePlan(doc, raw) {
			s.stop("the run's document has no plan")
		}
	})
	a := s.planCall(s.as, http.MethodPost, sessionPath(p.SessionID)+"/execute", map[string]any{"planHash": p.PlanHash})
	if now := s.moved(p.SessionID); now.Status != "FAILED" || strings.Contains(string(now.Body), raw) {
		s.wrong("the session stands as %s", now.Body)
	}
	return gotOf(a.Answer)
}

// replacePlan replaces every proposed plan in a document.
func replacePlan(v any, raw string) (found bool) {
	switch v := v.(type) {
	case []any:
		for _, one := range v {
			found = replacePlan(one, raw) || found
		}
	case map[string]any:
		for name, one := range v {
			if part, ok := one.(map[string]any); ok && name == "proposed" && part["plan"] != nil {
				part["plan"], found = raw, true
			} else {
				found = replacePlan(one, raw) || found
			}
		}
	}
	return found
}

// lateInTool lets the deadline pass while GitHub opens an issue that a grant permits.
func (s *env) lateInTool() got {
	s.openPlans()
	grants := []any{map[string]any{"tool": github.CreateIssue, "maxCalls": json.Number("1"),
		"target": map[string]any{"owner": repoOwner, "repo": repoName}}}
	p := s.waiting(planner(oneTask(grants, github.CreateIssue),
		inRepo(github.CreateIssue, map[string]any{"title": "Broken"})))
	s.w.SetFault(func(op string) fakegoogle.Fault {
		if op == "issues/create" {
			s.pass(2 * time.Hour)
		}
		return fakegoogle.Fault{}
	})
	p = s.confirm(p, grants...)
	s.must(s.deliver())
	s.must(s.sweep())
	p = s.moved(p.SessionID)
	if p.Status != "DEADLINE_EXCEEDED" || len(p.Log) != 1 || p.Log[0].ExecutionStatus != "succeeded" ||
		s.w.GitHub.Effects("issues/create") != 1 {
		s.wrong("it ends as %s", p.Body)
	}
	return got{status: p.HTTP, class: "none", detail: p.Status}
}

// proposing runs a case of tool:propose_plan: the model proposes the case's plan, and a valid one if that is refused.
func proposing(s *env) got {
	s.openPlans()
	args, _ := s.take("args")
	fine := oneTask(nil, github.CreateIssue)
	s.w.SetModel(func(r fakegemini.Request) fakegemini.Turn {
		proposal := args
		if len(r.Responses()) > 0 {
			proposal = fine
		}
		return fakegemini.Turn{Calls: []fakegemini.Call{{Name: plan.ProposeTool,
			Args: json.RawMessage(jsonOf(proposal))}}}
	})
	p := s.planCall(s.as, http.MethodPost, sessionPath(""), jsonOf(s.wish()))
	p = s.moved(p.SessionID)
	a := s.run(s.as, testkit.Answer{RunID: p.RunID})
	if len(a.Actions) == 0 || len(p.Approvals) != 1 || s.effects() > 0 {
		s.stop("it stands as %s", p.Body)
	}
	g := gotOf(a)
	switch first := a.Actions[0]; {
	case first.ActionID == p.Approvals[0].ActionID:
		g.decision = "require_approval"
	case len(p.Grants) > 0:
		s.wrong("what waits after a plan that was refused has grants")
	default:
		g.decision = "deny"
	}
	return g
}

// inPlan runs a case of a GitHub tool: a task's call, after the reads, grants and events that the case describes.
func inPlan(s *env) got {
	name := strings.TrimPrefix(s.c.Target, "tool:")
	reads := s.has("read")
	s.openPlans()
	v, _ := s.take("args")
	args, _ := v.(map[string]any)
	s.keep(args)
	times := 1
	if n, ok := s.take("times"); ok {
		times = s.number(n)
	}
	var grants []any
	if g, ok := s.take("grant"); ok {
		grants = []any{g}
	}
	var calls []fakegemini.Call
	if reads {
		calls = append(calls, inRepo(github.ReadIssue, map[string]any{"issueNumber": json.Number("1")}))
	}
	calls = append(calls, slices.Repeat([]fakegemini.Call{inRepo(name, args)}, times)...)
	p := s.confirm(s.waiting(planner(oneTask(grants, name, github.ReadIssue), calls...)), grants...)
	s.since(&p)
	before := s.effects()
	p = s.moved(p.SessionID)
	return s.inPlanJudged(p, name, times, before)
}

// contextFile are the repository files that plans read at the start.
var contextFile = map[string]bool{"AGENT.md": true, "AGENTS.md": true, "README.md": true}

// misled puts an order into such a file. The order tells the model to deviate from the plan that the user confirmed.
// The model then claims that everything is done.
func (s *env) misled(file string) got {
	v, _ := s.take("untrusted")
	spec, _ := v.(map[string]any)
	text := textOf(spec["text"])
	if how := s.takeText("model"); how != updates {
		s.unknown("a model that %s", how)
	}
	s.private[text] = true
	s.openPlans(file, text)
	p := s.waiting(planner(issueTask(),
		fakegemini.Call{Name: plan.ReflectTool, Args: map[string]any{"is_task_complete": true, "reflection": text}},
		inRepo(github.CreateIssue, map[string]any{"title": "Broken"})))
	hash, due := p.PlanHash, p.Deadline
	p = s.confirm(p)
	p = s.moved(p.SessionID)
	a := s.run(s.as, testkit.Answer{RunID: p.RunID})
	if p.Status != "EXECUTING" || p.PlanHash != hash || p.Deadline != due || len(p.Tasks) != 1 ||
		p.Tasks[0].Status != "EXECUTING" || len(p.Approvals) != 1 || s.effects() > 0 {
		s.wrong("it stands as %s", p.Body)
	}
	return gotOf(a)
}

// inPlanJudged returns the result of the last call. The calls before it are allowed.
func (s *env) inPlanJudged(p session, name string, times, before int) got {
	a := s.run(s.as, testkit.Answer{RunID: p.RunID})
	var acts []testkit.Action
	for _, act := range a.Actions {
		if act.Tool == name {
			acts = append(acts, act)
		}
	}
	if len(acts) < times {
		s.stop("%d calls of %s were made, not %d: %s", len(acts), name, times, p.Body)
	}
	last, done := acts[times-1], s.effects()-before
	g := got{status: a.HTTP, class: "none", detail: fmt.Sprintf("%d %.300s", p.HTTP, p.Body)}
	switch {
	case len(p.Approvals) > 0 && p.Approvals[0].ActionID == last.ActionID:
		g.decision = "require_approval"
		s.decided(s.as, p.Answer, "approve_once")
		if n := s.effects() - before - done; n != 1 {
			s.wrong("the yes had %d effects", n)
		}
		done++
	case last.ErrorCode != "":
		g.class, g.code, g.field, g.message = last.ErrorCode, last.ErrorReason, last.Field, last.Message
		g.decision, done = "deny", done+1
	default:
		g.decision = "allow"
	}
	if done != times {
		s.wrong("there were %d effects of %d", done, times)
	}
	return g
}

// reflecting runs a case of tool:reflect: the model claims success for a task whose effect does not exist yet. The
// claim must not count, or must have the result that the case expects.
func reflecting(s *env) got {
	s.openPlans()
	args, _ := s.take("args")
	p := s.waiting(planner(issueTask(), fakegemini.Call{Name: plan.ReflectTool, Args: json.RawMessage(jsonOf(args))},
		inRepo(github.CreateIssue, map[string]any{"title": "Broken"})))
	before := p.RawPlan
	p = s.confirm(p)
	p = s.moved(p.SessionID)
	a := s.run(s.as, testkit.Answer{RunID: p.RunID})
	g := got{status: a.HTTP, class: "none", decision: "deny", detail: fmt.Sprintf("%d %.300s", p.HTTP, p.Body)}
	for _, act := range a.Actions {
		if act.Tool == plan.ReflectTool && act.ErrorCode != "" {
			g.class, g.code, g.field, g.message = act.ErrorCode, act.ErrorReason, act.Field, act.Message
			break
		}
	}
	if p.Status != "EXECUTING" && p.Status != "AWAITING_CONFIRMATION" || s.effects() > 0 {
		s.wrong("it stands as %s", p.Body)
	}
	if p.Status == "EXECUTING" && p.RawPlan != before {
		s.wrong("the plan was changed: %s", p.RawPlan)
	}
	return g
}
