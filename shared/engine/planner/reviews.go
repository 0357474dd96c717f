package planner

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// A Comment is a comment of the session's user on a line of a pull request.
type Comment struct {
	PullRequest int    `json:"pullRequest"`
	Path        string `json:"path"`
	Line        int    `json:"line,omitempty"` // of the newest commit; 0: the line is gone
	Body        string `json:"body"`           // in Markdown; the end of a long comment is left out
	URL         string `json:"url"`
	CreatedAt   string `json:"createdAt"` // RFC 3339
	Words       string `json:"words"`     // a prompt, or a refinement, that asks for the change
}

// maxPulls is the maximum number of pull requests whose comments are read.
const maxPulls = 3

// Reviews returns the comments that the session's user has written, with their linked account, on the newest pull
// requests that the session has created or worked on, oldest first. Errors: AuthError not_found for a session that is
// not the user's; PolicyError not_bound if this deployment reads no repositories; the errors of Comments.
func (p *Planner) Reviews(ctx context.Context, uid, sessionID string) ([]Comment, error) {
	v, err := p.Get(ctx, uid, sessionID)
	if err != nil {
		return nil, err
	}
	if p.Comments == nil {
		return nil, fault.New(fault.Policy, fault.CodeNotBound, "This deployment reads no repositories.")
	}
	state := v.PlanState()
	repo, all := state.Input.Session.Repo, []Comment{}
	numbers := p.pulls(repo, state)
	for _, n := range numbers[max(len(numbers)-maxPulls, 0):] {
		found, err := p.Comments(ctx, uid, repo, n)
		if err != nil {
			return nil, err
		}
		for _, c := range found {
			c.PullRequest = n
			c.Words = c.wish()
			all = append(all, c)
		}
	}
	slices.SortStableFunc(all, func(a, b Comment) int { return strings.Compare(a.CreatedAt, b.CreatedAt) })
	return all, nil
}

// pulls returns the numbers of the pull requests in the session's repository that the session has created, that its
// calls named, or whose addresses its user wrote. They are in ascending order.
func (p *Planner) pulls(repo plan.Repo, state *run.State) (numbers []int) {
	before := fmt.Sprintf("%s/%s/%s/pull/", p.GitHubURL, repo.Owner(), repo.Name())
	texts := append(artifacts(state), state.Input.Prompt)
	for _, text := range append(texts, state.Plan.Words...) {
		for i, part := range strings.Split(text, before) {
			digits := part[:len(part)-len(strings.TrimLeft(part, "0123456789"))]
			if n, err := strconv.Atoi(digits); i > 0 && err == nil {
				numbers = append(numbers, n)
			}
		}
	}
	for _, e := range state.Plan.Log() {
		var in struct {
			Owner, Repo string
			PRNumber    int
		}
		if json.Unmarshal(e.Action.Args, &in) == nil && in.PRNumber > 0 && e.ExecutionStatus == plan.Succeeded &&
			strings.EqualFold(in.Owner, repo.Owner()) && strings.EqualFold(in.Repo, repo.Name()) {
			numbers = append(numbers, in.PRNumber)
		}
	}
	slices.Sort(numbers)
	return slices.Compact(numbers)
}

// wish returns the comment as a request of its user.
func (c Comment) wish() string {
	at := c.Path
	if c.Line > 0 {
		at = fmt.Sprintf("%s, line %d", at, c.Line)
	}
	return fmt.Sprintf("Make the change that I asked for in my comment on pull request #%d (%s), on the branch of "+
		"that pull request. I commented on %s:\n\n%s", c.PullRequest, c.URL, at, c.Body)
}
