package fakegithub

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Review is a comment on a line of a pull request.
type Review struct {
	Author, Path, Body string
	Line               int
	InReplyTo          int64 // ID of the comment that it answers; 0: it begins a conversation
}

// review is a stored review of a pull request.
type review struct {
	Review
	id int64
	at time.Time
}

// AddReview adds a comment on a line of a pull request, and returns its ID.
func (s *Server) AddReview(owner, name string, number int, in Review) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.addReview(s.find(owner, name).issues[number-1], in).id
}

func (s *Server) addReview(i *issue, in Review) *review {
	c := &review{in, s.id(), s.now()}
	i.reviews = append(slices.Clone(i.reviews), c)
	return c
}

// listReviewComments is the only list of a pull request. Its route has a wildcard, because [http.ServeMux] refuses
// /pulls/{pull_number}/comments beside /pulls/comments/{comment_id}.
func (s *Server) listReviewComments(r request) (answer, *failure) {
	i := r.pullOf()
	if i == nil || r.PathValue("list") != "comments" {
		return answer{}, missing()
	}
	all := newer(r, i.reviews, func(c *review) time.Time { return c.at })
	return listed(s, r, all, func(c *review) any { return s.reviewComment(r.repo, i, c) }), nil
}

// reviewOf returns the comment of the ID in the path, with its pull request, or nil.
func (r request) reviewOf() (*issue, *review) {
	for _, i := range r.repo.issues {
		for _, c := range i.reviews {
			if strconv.FormatInt(c.id, 10) == r.PathValue("comment_id") {
				return i, c
			}
		}
	}
	return nil, nil
}

func (s *Server) getReviewComment(r request) (answer, *failure) {
	i, c := r.reviewOf()
	if c == nil {
		return answer{}, missing()
	}
	return answer{body: s.reviewComment(r.repo, i, c)}, nil
}

// createReply accepts replies only to the comment that begins a conversation, as GitHub does.
func (s *Server) createReply(r request) (answer, *failure) {
	i, to := r.reviewOf()
	if to == nil || i != r.pullOf() || to.InReplyTo != 0 {
		return answer{}, missing()
	}
	var in struct{ Body string }
	if e := decode(r, &in); e != nil {
		return answer{}, e
	}
	if strings.TrimSpace(in.Body) == "" {
		return answer{}, invalid("PullRequestReviewComment", "body", "missing_field", "")
	}
	s.effects["pulls/create-reply-for-review-comment"]++
	made := s.addReview(i, Review{Author: r.login, Path: to.Path, Body: in.Body, Line: to.Line, InReplyTo: to.id})
	return answer{status: http.StatusCreated, body: s.reviewComment(r.repo, i, made)}, nil
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
