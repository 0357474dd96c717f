package github

import (
	"context"
	"fmt"

	githubapi "github.com/google/go-github/v92/github"

	"github.com/countersign-run/countersign/shared/agent/tool"
)

func (h *hub) updatePullRequest() *tool.Tool {
	return changing(h, tool.Def[ChangedPull, PullRequest]{
		Name: UpdatePullRequest,
		Description: "Changes a pull request of GitHub, in the user's own account. The user sees the new values in " +
			"full and approves them first.",
		Refine: refineUpdates("prNumber"),
		Normalize: func(in ChangedPull) (_ ChangedPull, err error) {
			if in.UpdatedAt, err = moment("updatedAt", in.UpdatedAt); err != nil {
				return in, err
			}
			return in, in.change().check()
		},
		Replaces: func(in ChangedPull) (all []tool.Text) {
			if in.Updates.Body != nil {
				all = append(all, bodyOf(in.Owner, in.Repo, "pull request", in.PRNumber))
			}
			return all
		},
		Pinned: func(in ChangedPull) any {
			in.Updates.Title, in.Updates.Body, in.UpdatedAt = nil, nil, ""
			return in
		},
		Preview: func(in ChangedPull) tool.Preview { return in.change().preview("Change a pull request on GitHub") },
		Link:    func(_ tool.Place, made PullRequest) string { return made.URL },
		Summary: func(in ChangedPull) string {
			return fmt.Sprintf("Changed pull request #%d of %s/%s.", in.PRNumber, in.Owner, in.Repo)
		},
	}, func(in ChangedPull) there[PullRequest] { return pullThere(in.change()) })
}

func (h *hub) closePullRequest() *tool.Tool {
	of := func(in OnePullRequest) there[PullRequest] { return pullThere(closing(in.Owner, in.Repo, in.PRNumber)) }
	return changing(h, tool.Def[OnePullRequest, PullRequest]{
		Name:        ClosePullRequest,
		Description: "Closes a pull request of GitHub, in the user's own account. The user approves it first.",
		Refine:      inRepository(map[string]int{"prNumber": maxNumber}),
		Normalize:   func(in OnePullRequest) (OnePullRequest, error) { return in, repository(in.Owner, in.Repo) },
		Preview:     func(in OnePullRequest) tool.Preview { return of(in).preview("Close a pull request on GitHub") },
		Link:        func(_ tool.Place, made PullRequest) string { return made.URL },
		Summary: func(in OnePullRequest) string {
			return fmt.Sprintf("Closed pull request #%d of %s/%s.", in.PRNumber, in.Owner, in.Repo)
		},
	}, of)
}

// pullThere reads and changes a pull request.
func pullThere(c change) there[PullRequest] {
	return there[PullRequest]{c, "pulls",
		func(ctx context.Context, api *githubapi.Client) (state, PullRequest, error) {
			p, _, err := api.PullRequests.Get(ctx, c.owner, c.repo, c.number)
			return pullState(p), openedPull(p), err
		},
		func(ctx context.Context, api *githubapi.Client) (state, PullRequest, error) {
			r := &githubapi.PullRequest{Title: c.wanted.Title, Body: c.wanted.Body, State: c.wanted.State}
			if c.wanted.Base != nil {
				r.Base = &githubapi.PullRequestBranch{Ref: c.wanted.Base}
			}
			p, _, err := api.PullRequests.Edit(ctx, c.owner, c.repo, c.number, r)
			return pullState(p), openedPull(p), err
		}}
}

func pullState(p *githubapi.PullRequest) state {
	if p.GetNumber() == 0 {
		return state{}
	}
	return state{number: p.GetNumber(), updated: at(p.GetUpdatedAt()), Title: p.GetTitle(), Body: p.GetBody(),
		State: p.GetState(), Base: p.GetBase().GetRef()}
}
