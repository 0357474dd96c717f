package fakegithub

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// pullOf returns the pull request of the number in the path, or nil.
func (r request) pullOf() *issue {
	if i := r.issueOf("pull_number"); i != nil && i.pull != nil {
		return i
	}
	return nil
}

func (s *Server) listPulls(r request) (answer, *failure) {
	var all []*issue
	for _, i := range slices.Backward(r.repo.issues) {
		if i.pull != nil && inState(i.state, r.FormValue("state")) &&
			(r.FormValue("base") == "" || i.pull.base == r.FormValue("base")) &&
			(r.FormValue("head") == "" || r.repo.owner+":"+i.pull.head == r.FormValue("head")) {
			all = append(all, i)
		}
	}
	return listed(s, r, all, func(i *issue) any { return s.pull(r.repo, i) }), nil
}

func (s *Server) getPull(r request) (answer, *failure) {
	i := r.pullOf()
	if i == nil {
		return answer{}, missing()
	}
	return answer{body: s.pull(r.repo, i)}, nil
}

// createPull accepts only branches of the repository itself, not those of forks.
func (s *Server) createPull(r request) (answer, *failure) {
	var in struct{ Title, Head, Base, Body string }
	if e := decode(r, &in); e != nil {
		return answer{}, e
	}
	in.Head = strings.TrimPrefix(in.Head, r.repo.owner+":")
	head, base := r.repo.branches[in.Head], r.repo.branches[in.Base]
	switch {
	case !r.repo.writable(r.login):
		return answer{}, forbidden()
	case strings.TrimSpace(in.Title) == "":
		return answer{}, invalid("PullRequest", "title", "missing_field", "")
	case head == "":
		return answer{}, invalid("PullRequest", "head", "invalid", "")
	case base == "":
		return answer{}, invalid("PullRequest", "base", "invalid", "")
	case r.repo.descends(base, head):
		return answer{}, invalid("PullRequest", "base", "custom",
			fmt.Sprintf("No commits between %s and %s", in.Base, in.Head))
	}
	for _, i := range r.repo.issues {
		if i.pull != nil && i.state == "open" && *i.pull == (pull{in.Head, in.Base}) {
			return answer{}, invalid("PullRequest", "base", "custom",
				fmt.Sprintf("A pull request already exists for %s:%s.", r.repo.owner, in.Head))
		}
	}
	i := s.addIssue(r.repo, issue{title: in.Title, body: in.Body, author: r.login, pull: &pull{in.Head, in.Base}})
	s.effects["pulls/create"]++
	return answer{status: http.StatusCreated, body: s.pull(r.repo, i)}, nil
}

func (s *Server) updatePull(r request) (answer, *failure) {
	i := r.pullOf()
	if i == nil {
		return answer{}, missing()
	}
	if e := s.update(r, i, "pulls/update"); e != nil {
		return answer{}, e
	}
	return answer{body: s.pull(r.repo, i)}, nil
}
