package fakegithub

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// A Check is a check run or, with a State, a status of a commit.
type Check struct {
	Name                  string
	Status, Conclusion    string // of a check run: queued, in_progress, completed; success, failure, …
	State                 string // of a status: pending, success, failure, error
	Title, Summary, Text  string // of a check run's output
	Description, LinkedTo string // of a status
	Log                   string // of a job of GitHub Actions: the address of its log
}

// check is a stored check of a commit.
type check struct {
	Check
	id  int64
	sha string
	at  time.Time
}

// AddCheck adds a check to the commit at the head of a branch, or replaces the one of the same name.
func (s *Server) AddCheck(owner, name, branch string, c Check) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.find(owner, name)
	sha := r.branches[branch]
	r.checks = slices.DeleteFunc(slices.Clone(r.checks), func(old *check) bool {
		return old.sha == sha && old.Name == c.Name
	})
	r.checks = append(r.checks, &check{c, s.id(), sha, s.now()})
}

func (r *repository) checksOf(sha string, statuses bool) (all []*check) {
	for _, c := range r.checks {
		if c.sha == sha && (c.State != "") == statuses {
			all = append(all, c)
		}
	}
	return all
}

func (s *Server) listChecks(r request) (answer, *failure) {
	at := r.repo.at(r.PathValue("ref"))
	if at == nil {
		return answer{}, unprocessable("No commit found for SHA: " + r.PathValue("ref"))
	}
	all := r.repo.checksOf(at.sha, false)
	a := listed(s, r, all, func(c *check) any { return s.checkRun(r.repo, c) })
	a.body = object{"total_count": len(all), "check_runs": a.body}
	return a, nil
}

func (s *Server) getStatus(r request) (answer, *failure) {
	at := r.repo.at(r.PathValue("ref"))
	if at == nil {
		return answer{}, missing()
	}
	all, state := r.repo.checksOf(at.sha, true), "pending"
	for i, c := range all {
		if i == 0 || c.State != "success" {
			state = c.State
		}
	}
	api := s.api(r.repo) + "/commits/" + at.sha
	a := listed(s, r, all, func(c *check) any { return s.status(r.repo, c) })
	a.body = object{"state": state, "sha": at.sha, "total_count": len(all), "statuses": a.body,
		"repository": s.repository(r.repo), "commit_url": api, "url": api + "/status"}
	return a, nil
}

func (s *Server) checkRun(r *repository, c *check) object {
	api := fmt.Sprintf("%s/check-runs/%d", s.api(r), c.id)
	o := object{"id": c.id, "node_id": node("CR", c.id), "head_sha": c.sha, "external_id": "", "url": api,
		"html_url": fmt.Sprintf("%s/runs/%d", s.web(r), c.id), "details_url": nil, "status": c.Status,
		"conclusion": nil, "started_at": c.at, "completed_at": nil, "name": c.Name, "check_suite": object{"id": c.id},
		"app": nil, "pull_requests": []any{}, "output": object{"title": orNull(c.Title), "summary": orNull(c.Summary),
			"text": orNull(c.Text), "annotations_count": 0, "annotations_url": api + "/annotations"}}
	if c.Log != "" {
		o["app"] = s.actions()
	}
	if c.Conclusion != "" {
		o["conclusion"], o["completed_at"] = c.Conclusion, c.at
	}
	return o
}

func (s *Server) status(r *repository, c *check) object {
	return object{"id": c.id, "node_id": node("SC", c.id), "state": c.State, "context": c.Name,
		"description": orNull(c.Description), "target_url": orNull(c.LinkedTo), "avatar_url": nil, "created_at": c.at,
		"updated_at": c.at, "url": fmt.Sprintf("%s/statuses/%s", s.api(r), c.sha)}
}

// actions returns the app GitHub Actions.
func (s *Server) actions() object {
	return object{"id": 15368, "slug": "github-actions", "node_id": node("A", 15368), "owner": s.user("github"),
		"name": "GitHub Actions", "description": "", "external_url": "https://help.github.com",
		"html_url": s.opts.Web + "/apps/github-actions", "created_at": s.now(), "updated_at": s.now(),
		"permissions": object{}, "events": []any{}}
}

// getJobLog redirects to the log of the job whose check has the ID.
func (s *Server) getJobLog(r request) (answer, *failure) {
	for _, c := range r.repo.checks {
		if c.Log != "" && strconv.FormatInt(c.id, 10) == r.PathValue("job_id") {
			return answer{location: c.Log}, nil
		}
	}
	return answer{}, missing()
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}
