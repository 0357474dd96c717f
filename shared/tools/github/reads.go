package github

import (
	"context"

	githubapi "github.com/google/go-github/v92/github"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/tools/internal/provider"
)

// The names of the tools that change nothing.
const (
	ListRepositories   = "github.listRepositories"
	RetrieveRepository = "github.retrieveRepository"
	ReadIssue          = "github.readIssue"
	ListIssues         = "github.listIssues"
	ReadPullRequest    = "github.readPullRequest"
)

// The sizes of pages.
const (
	perPage  = 50
	comments = 20
)

// reader returns a tool that reads from GitHub. look returns the result, which is null for a missing object (seed 004).
// check validates the arguments that name the repository.
func reader[In, Out any](h *hub, name, description string, refine func(*jsonschema.Schema), check func(In) error,
	look func(context.Context, *githubapi.Client, In) (*Out, error)) *tool.Tool {
	return define(h, tool.Def[In, any]{Name: name, Description: description, Untrusted: true, Refine: refine,
		Normalize: func(in In) (In, error) { return in, check(in) },
		Reading:   func(in In, out any) tool.Reading { return readingOf(in, out) },
		Shows:     func(in In, out any) []tool.Part { return showsOf(in, out) },
		Execute: func(ctx context.Context, c tool.Call, in In) (any, error) {
			out, err := looked(ctx, h, c, name, in, look)
			if err != nil || out == nil {
				return nil, err
			}
			return out, nil
		}})
}

// looked calls a function that reads from GitHub. It returns nil for a missing object.
func looked[In, Out any](ctx context.Context, h *hub, c tool.Call, name string, in In,
	look func(context.Context, *githubapi.Client, In) (*Out, error)) (*Out, error) {
	api, err := h.client(ctx, c)
	if err != nil {
		return nil, err
	}
	out, err := look(ctx, api, in)
	switch {
	case err != nil && read(err).Proof == provider.Missing:
		return nil, nil
	case err != nil && (fault.As(err).Class == fault.Validation || tool.IsTransient(err)): // this program's own error
		return nil, err
	case err != nil:
		return nil, unlooked(err, name)
	case out == nil:
		return nil, odd()
	}
	return out, nil
}

// Page holds the arguments of a list without other arguments.
type Page struct {
	Page int `json:"page,omitempty" jsonschema:"From 1 on; left out: the first."`
}

// Repositories is a page of repositories.
type Repositories struct {
	Repositories []Repository `json:"repositories"`
	More         bool         `json:"more,omitempty"` // whether there is another page
}

func (h *hub) listRepositories() *tool.Tool {
	return reader(h, ListRepositories, "Lists the GitHub repositories that the user may write to, 50 a page.",
		func(s *jsonschema.Schema) { bounded(s, map[string]int{"page": 1000}) },
		func(Page) error { return nil },
		func(ctx context.Context, api *githubapi.Client, in Page) (*Repositories, error) {
			all, res, err := api.Repositories.ListByAuthenticatedUser(ctx,
				&githubapi.RepositoryListByAuthenticatedUserOptions{
					ListOptions: githubapi.ListOptions{Page: in.Page, PerPage: perPage}})
			if err != nil {
				return nil, err
			}
			out := Repositories{Repositories: []Repository{}, More: res.NextPage != 0}
			for _, r := range all {
				out.Repositories = append(out.Repositories, repositoryOf(r))
			}
			return &out, nil
		})
}

// Where names a repository.
type Where struct {
	Owner string `json:"owner" jsonschema:"The account that the repository belongs to."`
	Repo  string `json:"repo" jsonschema:"The repository's name."`
}

func (h *hub) retrieveRepository() *tool.Tool {
	return reader(h, RetrieveRepository, "Looks a GitHub repository up; null if there is none that the user may see.",
		inRepository(nil), func(in Where) error { return repository(in.Owner, in.Repo) },
		func(ctx context.Context, api *githubapi.Client, in Where) (*Repository, error) {
			r, _, err := api.Repositories.Get(ctx, in.Owner, in.Repo)
			if err != nil || r.GetName() == "" {
				return nil, err
			}
			out := repositoryOf(r)
			return &out, nil
		})
}

// OneIssue names an issue.
type OneIssue struct {
	Owner       string `json:"owner" jsonschema:"The account that the repository belongs to."`
	Repo        string `json:"repo" jsonschema:"The repository's name."`
	IssueNumber int    `json:"issueNumber"`
}

// IssueToRead names an issue, and the offset at which its body is read.
type IssueToRead struct {
	OneIssue
	BodyOffset int `json:"bodyOffset,omitempty" jsonschema:"The byte of its body to begin at; left out: the first."`
}

func (h *hub) readIssue() *tool.Tool {
	return reader(h, ReadIssue,
		"Reads an issue of GitHub with its first 20 comments; null if there is none that the user may see.",
		inRepository(map[string]int{"issueNumber": maxNumber, "bodyOffset": maxRead}),
		func(in IssueToRead) error { return repository(in.Owner, in.Repo) },
		func(ctx context.Context, api *githubapi.Client, in IssueToRead) (*Issue, error) {
			i, _, err := api.Issues.Get(ctx, in.Owner, in.Repo, in.IssueNumber)
			if err != nil || i.GetNumber() == 0 {
				return nil, err
			}
			out := issueOf(i, piece{in.BodyOffset, maxText})
			out.Comments, err = firstComments(ctx, api, in.Owner, in.Repo, in.IssueNumber)
			return &out, err
		})
}

func firstComments(ctx context.Context, api *githubapi.Client, owner, repo string, number int) (out []Comment,
	err error) {
	all, _, err := api.Issues.ListComments(ctx, owner, repo, number,
		&githubapi.IssueListCommentsOptions{ListOptions: githubapi.ListOptions{PerPage: comments}})
	for _, c := range all[:min(len(all), comments)] {
		out = append(out, commentOf(c))
	}
	return out, err
}

// SomeIssues holds the arguments of a list of issues.
type SomeIssues struct {
	Owner  string   `json:"owner" jsonschema:"The account that the repository belongs to."`
	Repo   string   `json:"repo" jsonschema:"The repository's name."`
	State  string   `json:"state,omitempty" jsonschema:"Left out: open."`
	Labels []string `json:"labels,omitempty" jsonschema:"Only issues with all of these."`
	Page   int      `json:"page,omitempty" jsonschema:"From 1 on; left out: the first."`
}

// Issues is a page of issues, newest first.
type Issues struct {
	Issues []Issue `json:"issues"`
	More   bool    `json:"more,omitempty"` // whether there is another page
}

// refineList bounds the fields that all lists have.
func refineList(s *jsonschema.Schema) {
	inRepository(map[string]int{"page": 1000})(s)
	s.Properties["state"].Enum = []any{"open", "closed", "all"}
}

func (h *hub) listIssues() *tool.Tool {
	return reader(h, ListIssues,
		"Lists issues of a GitHub repository without their comments, newest first; null if there is no such "+
			"repository.",
		refineList, func(in SomeIssues) error {
			_, err := set("labels", in.Labels, MaxLabels, isLabel)
			if where := repository(in.Owner, in.Repo); where != nil {
				return where
			}
			return err
		},
		func(ctx context.Context, api *githubapi.Client, in SomeIssues) (*Issues, error) {
			all, res, err := api.Issues.ListByRepo(ctx, in.Owner, in.Repo, &githubapi.IssueListByRepoOptions{
				State: in.State, Labels: in.Labels,
				ListOptions: githubapi.ListOptions{Page: in.Page, PerPage: perPage}})
			if err != nil {
				return nil, err
			}
			out := Issues{Issues: []Issue{}, More: res.NextPage != 0}
			for _, i := range all {
				if i != nil && !i.IsPullRequest() {
					out.Issues = append(out.Issues, issueOf(i, piece{most: maxExcerpt}))
				}
			}
			return &out, nil
		})
}

// OnePullRequest names a pull request.
type OnePullRequest struct {
	Owner    string `json:"owner" jsonschema:"The account that the repository belongs to."`
	Repo     string `json:"repo" jsonschema:"The repository's name."`
	PRNumber int    `json:"prNumber"`
}

// PullRequestToRead names a pull request, and the offset at which its body is read.
type PullRequestToRead struct {
	OnePullRequest
	BodyOffset int `json:"bodyOffset,omitempty" jsonschema:"The byte of its body to begin at; left out: the first."`
}

func (h *hub) readPullRequest() *tool.Tool {
	return reader(h, ReadPullRequest,
		"Reads a pull request of GitHub with its first 20 comments; null if there is none that the user may see.",
		inRepository(map[string]int{"prNumber": maxNumber, "bodyOffset": maxRead}),
		func(in PullRequestToRead) error { return repository(in.Owner, in.Repo) },
		func(ctx context.Context, api *githubapi.Client, in PullRequestToRead) (*PullRequest, error) {
			p, _, err := api.PullRequests.Get(ctx, in.Owner, in.Repo, in.PRNumber)
			if err != nil || p.GetNumber() == 0 {
				return nil, err
			}
			out := pullRequestOf(p, piece{in.BodyOffset, maxText})
			out.Comments, err = firstComments(ctx, api, in.Owner, in.Repo, in.PRNumber)
			return &out, err
		})
}
