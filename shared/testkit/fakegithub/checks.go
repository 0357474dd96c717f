package fakegithub

import (
	"fmt"
	"slices"
	"time"
)

// A Check is a check run or, with a State, a status of a commit.
type Check struct {
	Name                  string
	Status, Conclusion    string // of a check run: queued, in_progress, completed; success, failure, …
	State                 string // of a status: pending, success, failure, error
	Title, Summary, Text  string // of a check run's output
	Description, LinkedTo string // of a status
}

// check is one that a commit has.
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

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// A Review is a comment on a line of a pull request.
type Review struct {
	Author, Path, Body string
	Line               int
	InReplyTo          int64 // ID of the comment that it answers; 0: it begins a conversation
}

// review is one that a pull request has.
type review struct {
	Review
	id int64
	at time.Time
}

// AddReview adds a comment on a line of a pull request, and returns its ID.
func (s *Server) AddReview(owner, name string, number int, in Review) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := s.find(owner, name).issues[number-1]
	c := &review{in, s.id(), s.now()}
	i.reviews = append(slices.Clone(i.reviews), c)
	return c.id
}

func (s *Server) listReviewComments(r request) (answer, *failure) {
	i := r.pullOf()
	if i == nil {
		return answer{}, missing()
	}
	return listed(s, r, i.reviews, func(c *review) any { return s.reviewComment(r.repo, i, c) }), nil
}

func (s *Server) reviewComment(r *repository, i *issue, c *review) object {
	api := fmt.Sprintf("%s/pulls/comments/%d", s.api(r), c.id)
	web := fmt.Sprintf("%s/pull/%d#discussion_r%d", s.web(r), i.number, c.id)
	pull := fmt.Sprintf("%s/pulls/%d", s.api(r), i.number)
	head := r.branches[i.pull.head]
	o := object{"id": c.id, "node_id": node("PRRC", c.id), "url": api, "html_url": web, "pull_request_url": pull,
		"pull_request_review_id": c.id, "diff_hunk": "@@ -1 +1 @@", "path": c.Path, "commit_id": head,
		"original_commit_id": head, "user": s.user(c.Author), "body": c.Body, "created_at": c.at, "updated_at": c.at,
		"author_association": "NONE", "line": c.Line, "original_line": c.Line, "side": "RIGHT",
		"_links": object{"self": object{"href": api}, "html": object{"href": web},
			"pull_request": object{"href": pull}}}
	if c.InReplyTo != 0 {
		o["in_reply_to_id"] = c.InReplyTo
	}
	return o
}
