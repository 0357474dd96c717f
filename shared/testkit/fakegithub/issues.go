package fakegithub

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// issueOf returns the issue or pull request of a number in the path, or nil.
func (r request) issueOf(parameter string) *issue {
	n, err := strconv.Atoi(r.PathValue(parameter))
	if err != nil || n < 1 || n > len(r.repo.issues) {
		return nil
	}
	return r.repo.issues[n-1]
}

func (s *Server) listIssues(r request) (answer, *failure) {
	since := r.since()
	var all []*issue
	for _, i := range slices.Backward(r.repo.issues) {
		if inState(i.state, r.FormValue("state")) && !i.updated.Before(since) && labelled(i, r.FormValue("labels")) &&
			(r.FormValue("creator") == "" || strings.EqualFold(i.author, r.FormValue("creator"))) {
			all = append(all, i)
		}
	}
	return listed(s, r, all, func(i *issue) any { return s.issue(r.repo, i) }), nil
}

// since returns the lower bound of a list, or the zero time.
func (r request) since() time.Time {
	t, _ := time.Parse(time.RFC3339, r.FormValue("since"))
	return t
}

// newer returns the comments that are not older than since.
func newer[T any](r request, comments []T, created func(T) time.Time) (all []T) {
	since := r.since()
	for _, c := range comments {
		if !created(c).Before(since) {
			all = append(all, c)
		}
	}
	return all
}

func inState(state, wanted string) bool {
	return wanted == "all" || state == wanted || wanted == "" && state == "open"
}

func labelled(i *issue, wanted string) bool {
	for label := range strings.SplitSeq(wanted, ",") {
		if label != "" && !slices.Contains(i.labels, label) {
			return false
		}
	}
	return true
}

func (s *Server) getIssue(r request) (answer, *failure) {
	i := r.issueOf("issue_number")
	if i == nil {
		return answer{}, missing()
	}
	return answer{body: s.issue(r.repo, i)}, nil
}

// createIssue silently drops labels and assignees of a user who may not write, as GitHub does.
func (s *Server) createIssue(r request) (answer, *failure) {
	var in struct {
		Title, Body       string
		Labels, Assignees []string
	}
	if e := decode(r, &in); e != nil {
		return answer{}, e
	}
	if strings.TrimSpace(in.Title) == "" {
		return answer{}, invalid("Issue", "title", "missing_field", "")
	}
	i := issue{title: in.Title, body: in.Body, author: r.login}
	if r.repo.writable(r.login) {
		if e := r.repo.assignable(in.Assignees); e != nil {
			return answer{}, e
		}
		i.labels, i.assignees = in.Labels, in.Assignees
	}
	s.effects["issues/create"]++
	return answer{status: http.StatusCreated, body: s.issue(r.repo, s.addIssue(r.repo, i))}, nil
}

// assignable refuses assignees who may not write.
func (r *repository) assignable(logins []string) *failure {
	for _, login := range logins {
		if !r.writable(login) {
			return invalid("Issue", "assignees", "invalid", "")
		}
	}
	return nil
}

// change holds the fields of an issue or pull request that can be changed.
type change struct {
	Title, Body, State, Base *string
	Labels, Assignees        *[]string
}

func (s *Server) updateIssue(r request) (answer, *failure) {
	i := r.issueOf("issue_number")
	if i == nil {
		return answer{}, missing()
	}
	if e := s.update(r, i, "issues/update"); e != nil {
		return answer{}, e
	}
	return answer{body: s.issue(r.repo, i)}, nil
}

// update applies a request's change. A request that changes nothing is not an effect.
func (s *Server) update(r request, i *issue, op string) *failure {
	var in change
	if e := decode(r, &in); e != nil {
		return e
	}
	switch {
	case !r.repo.writable(r.login) && r.login != i.author:
		return forbidden()
	case in.State != nil && *in.State != "open" && *in.State != "closed":
		return invalid("Issue", "state", "invalid", "")
	case in.Title != nil && strings.TrimSpace(*in.Title) == "":
		return invalid("Issue", "title", "missing_field", "")
	case in.Base != nil && (i.pull == nil || r.repo.branches[*in.Base] == ""):
		return invalid("PullRequest", "base", "invalid", "")
	}
	if in.Assignees != nil {
		if e := r.repo.assignable(*in.Assignees); e != nil {
			return e
		}
	}
	if now := s.now(); i.apply(in, now) {
		i.updated = now
		s.effects[op]++
	}
	return nil
}

// apply makes the change, and reports whether it changed anything.
func (i *issue) apply(in change, now time.Time) (changed bool) {
	changed = set(&i.title, in.Title)
	changed = set(&i.body, in.Body) || changed
	if set(&i.state, in.State) {
		changed, i.closed = true, nil
		if i.state == "closed" {
			i.closed = &now
		}
	}
	changed = replace(&i.labels, in.Labels) || changed
	changed = replace(&i.assignees, in.Assignees) || changed
	if i.pull != nil {
		changed = set(&i.pull.base, in.Base) || changed
	}
	return changed
}

func set(at *string, v *string) bool {
	if v == nil || *at == *v {
		return false
	}
	*at = *v
	return true
}

func replace(at, v *[]string) bool {
	if v == nil || slices.Equal(*at, *v) {
		return false
	}
	*at = *v
	return true
}

func (s *Server) listComments(r request) (answer, *failure) {
	i := r.issueOf("issue_number")
	if i == nil {
		return answer{}, missing()
	}
	all := newer(r, i.comments, func(c *comment) time.Time { return c.created })
	return listed(s, r, all, func(c *comment) any { return s.comment(r.repo, i, c) }), nil
}

func (s *Server) createComment(r request) (answer, *failure) {
	i := r.issueOf("issue_number")
	if i == nil {
		return answer{}, missing()
	}
	var in struct{ Body string }
	if e := decode(r, &in); e != nil {
		return answer{}, e
	}
	if strings.TrimSpace(in.Body) == "" {
		return answer{}, invalid("IssueComment", "body", "missing_field", "")
	}
	s.effects["issues/create-comment"]++
	return answer{status: http.StatusCreated, body: s.comment(r.repo, i, s.addComment(i, r.login, in.Body))}, nil
}
