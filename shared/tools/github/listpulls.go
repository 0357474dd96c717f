package github

import (
	"context"

	githubapi "github.com/google/go-github/v92/github"

	"github.com/countersign-run/countersign/shared/agent/tool"
)

// ListPullRequests is the tool's name for the model.
const ListPullRequests = "github.listPullRequests"

// SomePullRequests holds the arguments of a list of pull requests.
type SomePullRequests struct {
	Owner string `json:"owner" jsonschema:"The account that the repository belongs to."`
	Repo  string `json:"repo" jsonschema:"The repository's name."`
	State string `json:"state,omitempty" jsonschema:"Left out: open."`
	Page  int    `json:"page,omitempty" jsonschema:"From 1 on; left out: the first."`
}

// PullRequests is a page of pull requests, newest first.
type PullRequests struct {
	PullRequests []PullRequest `json:"pullRequests"`
	More         bool          `json:"more,omitempty"` // whether there is another page
}

func (h *hub) listPullRequests() *tool.Tool {
	return reader(h, ListPullRequests,
		"Lists pull requests of a GitHub repository without their comments, newest first; null if there is no such "+
			"repository.",
		refineList, func(in SomePullRequests) error { return repository(in.Owner, in.Repo) },
		func(ctx context.Context, api *githubapi.Client, in SomePullRequests) (*PullRequests, error) {
			all, res, err := api.PullRequests.List(ctx, in.Owner, in.Repo, &githubapi.PullRequestListOptions{
				State: in.State, ListOptions: githubapi.ListOptions{Page: in.Page, PerPage: perPage}})
			if err != nil {
				return nil, err
			}
			out := PullRequests{PullRequests: []PullRequest{}, More: res.NextPage != 0}
			for _, p := range all {
				out.PullRequests = append(out.PullRequests, pullRequestOf(p, piece{most: maxExcerpt}))
			}
			return &out, nil
		})
}
