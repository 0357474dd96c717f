package trial

import (
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/base/wait"
	"github.com/countersign-run/countersign/shared/testkit"
)

// DemoRepository is the repository of the plans, as owner/name.
const DemoRepository = "demo/site"

// planned holds the fields of a planner session that the cases use.
type planned struct {
	SessionID, Status, PlanHash string
	Revision                    int
	Artifacts                   []string // addresses of the created objects
	Log                         []struct{ TaskID string }
}

// planning requests a plan with a grant for one issue, and returns the session once it waits.
func (s *session) planning(header ...string) planned {
	repo, ok := s.Server.(Repository)
	if !ok {
		proof.Must(fmt.Errorf("%s has no repository for plans", s.URL()))
	}
	return s.waiting(s.plans("POST", "", map[string]any{"repoUrl": repo.RepoURL(),
		"prompt":   "fix the broken link of " + DemoRepository + " and open an issue about it",
		"deadline": time.Now().Add(time.Hour).Format(time.RFC3339)}, header...))
}

// plans sends a request about plans, which must be accepted.
func (s *session) plans(method, path string, body any, header ...string) (p planned) {
	a := s.tryPlans(method, path, body, header...)
	if a.HTTP >= http.StatusMultipleChoices {
		proof.Must(fmt.Errorf("%s /plans%s: %d %s", method, path, a.HTTP, a.Body))
	}
	proof.Must(json.Unmarshal(a.Body, &p))
	return p
}

func (s *session) tryPlans(method, path string, body any, header ...string) testkit.Answer {
	return got(s.as(First)(s.ctx, method, "/api/agent/plans"+path, body, header...))
}

// waiting returns the session once no process works on it.
func (s *session) waiting(p planned) planned {
	for p.Status == "PLANNING" || p.Status == "EXECUTING" {
		if err := wait.For(s.ctx, pause); err != nil {
			proof.Must(fmt.Errorf("the session is still %s: %w", p.Status, err))
		}
		p = s.plans("GET", "/"+p.SessionID, nil)
	}
	return p
}

// done describes the effects of the session.
func (p planned) done() string {
	for _, step := range p.Log {
		if step.TaskID != "" { // other steps are the planning's reads
			return fmt.Sprintf("%d steps were made, and %q", len(p.Log), p.Artifacts)
		}
	}
	return "nothing is done"
}

func commentIsNoYes(s *session) string {
	p := s.planning()
	for _, words := range []string{"Looks good, go.", "I confirm the plan. Execute it now."} {
		p = s.waiting(s.plans("POST", "/"+p.SessionID+"/refine", map[string]any{"refinementPrompt": words}))
	}
	return p.Status + "; " + p.done()
}

func nobodyIsThere(s *session) string {
	p := s.planning("Prefer", "wait=30")
	without := s.tryPlans("POST", "/"+p.SessionID+"/execute", map[string]any{})
	p = s.plans("GET", "/"+p.SessionID, nil)
	return fmt.Sprintf("%s; %s; an approval without a hash returns %d "+
		"%s", p.Status, p.done(), without.HTTP, without.Error.Field)
}

func oldRevision(s *session) string {
	first := s.planning()
	second := s.waiting(s.plans("POST", "/"+first.SessionID+"/refine",
		map[string]any{"refinementPrompt": "make step 2 smaller"}))
	if second.PlanHash == first.PlanHash {
		return "the plan is the same"
	}
	late := s.tryPlans("POST", "/"+first.SessionID+"/execute", map[string]any{"planHash": first.PlanHash})
	p := s.plans("GET", "/"+first.SessionID, nil)
	return fmt.Sprintf("%d %s; %s; %s", late.HTTP, late.Error.Code, p.Status, p.done())
}

func twentyConfirmations(s *session) string {
	p := s.planning()
	var answered atomic.Int64
	proof.AtOnce(20, func(int) {
		for {
			a := s.tryPlans("POST", "/"+p.SessionID+"/execute", map[string]any{"planHash": p.PlanHash})
			if a.HTTP != http.StatusServiceUnavailable {
				if a.HTTP < http.StatusMultipleChoices {
					answered.Add(1)
				}
				return
			}
			proof.Must(wait.For(s.ctx, pause))
		}
	})
	p = s.waiting(s.plans("GET", "/"+p.SessionID, nil))
	return fmt.Sprintf("%d of 20 answered with one outcome; %s with %d issue", answered.Load(), p.Status,
		len(p.Artifacts))
}
