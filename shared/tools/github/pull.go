package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	githubapi "github.com/google/go-github/v92/github"

	"github.com/countersign-run/countersign/shared/agent/tool"
)

// CreatePullRequest is the tool's name for the model.
const CreatePullRequest = "github.createPullRequest"

// NewPullRequest holds the arguments of createPullRequest.
type NewPullRequest struct {
	Owner string `json:"owner" jsonschema:"The account that the repository belongs to."`
	Repo  string `json:"repo" jsonschema:"The repository's name."`
	Title string `json:"title" jsonschema:"One line."`
	Head  string `json:"head" jsonschema:"The branch with the changes, or account:branch of a fork."`
	Base  string `json:"base" jsonschema:"The branch that they are to go into."`
	Body  string `json:"body,omitempty" jsonschema:"Markdown."`
}

func (h *hub) createPullRequest() *tool.Tool {
	return define(h, tool.Def[NewPullRequest, PullRequest]{
		Name: CreatePullRequest,
		Description: "Opens one pull request in a GitHub repository, in the user's own account. The user sees it in " +
			"full and approves it first.",
		SideEffect: true,
		Refine: inRepository(map[string]int{"title": MaxTitle, "body": MaxBody, "head": 240,
			"base": 200}),
		Normalize: normalPull,
		Targets:   func(in NewPullRequest) []tool.Target { return reached(in.Owner, in.Repo, nil) },
		Pinned: func(in NewPullRequest) any {
			in.Body = ""
			return struct {
				NewPullRequest
				Title string `json:"title,omitempty"` // shadows the embedded field, so that it is not pinned
			}{NewPullRequest: in}
		},
		Preview: func(in NewPullRequest) tool.Preview {
			c := newCard("Open a pull request on GitHub", in.Owner, in.Repo)
			c.AddLine("Title", in.Title)
			c.AddField("From the branch", in.Head)
			c.AddField("Into the branch", in.Base)
			c.body(in.Body)
			return c.Preview
		},
		Link: func(_ tool.Place, made PullRequest) string { return made.URL },
		Summary: func(in NewPullRequest) string {
			return fmt.Sprintf("Opened a pull request in %s/%s.", in.Owner, in.Repo)
		},
		Heading: func(in NewPullRequest) string {
			return fmt.Sprintf("Pull request in %s/%s: %s", in.Owner, in.Repo, in.Title)
		},
		Prepare: func(ctx context.Context, c tool.Call, in NewPullRequest) (string, error) {
			return h.inRepositoryBegun(ctx, c, in.Owner, in.Repo)
		},
		Execute:   h.openPull,
		Reconcile: h.reconcilePull,
		LookUp:    h.lookUpPull,
	})
}

func normalPull(in NewPullRequest) (NewPullRequest, error) {
	if err := repository(in.Owner, in.Repo); err != nil {
		return in, err
	}
	var err error
	if in.Title, err = line("title", in.Title); err != nil {
		return in, err
	}
	owner, head, fork := strings.Cut(in.Head, ":")
	if !fork {
		owner, head = in.Owner, in.Head
	}
	if err := branch("head", head); err != nil {
		return in, err
	}
	if !ownerName.MatchString(owner) {
		return in, branch("head", in.Head)
	}
	if err := branch("base", in.Base); err != nil {
		return in, err
	}
	in.Body, err = text("body", in.Body, MaxBody)
	return in, err
}

// openPull opens the pull request. GitHub accepts only one open pull request for a head and base, so a refusal may mean
// that an earlier attempt succeeded.
func (h *hub) openPull(ctx context.Context, c tool.Call, in NewPullRequest) (PullRequest, error) {
	api, err := h.clientOfBegun(ctx, c)
	if err != nil {
		return PullRequest{}, err
	}
	const call, thing = "pulls.create", "the pull request"
	p, _, err := api.PullRequests.Create(ctx, in.Owner, in.Repo, githubapi.CreatePullRequest{Title: &in.Title,
		Head: in.Head, Base: in.Base, Body: new(marked(in.Body, c.ActionID))})
	switch {
	case exists(err):
		return h.existing(ctx, c, in, failed(err, call, thing))
	case err != nil:
		return PullRequest{}, failed(err, call, thing)
	case p.GetNumber() == 0:
		return PullRequest{}, unread(thing)
	}
	return openedPull(p), nil
}

// exists reports whether GitHub says that the pull request exists already.
func exists(err error) bool {
	var refused *githubapi.ErrorResponse
	return errors.As(err, &refused) && refused.Response != nil &&
		refused.Response.StatusCode == http.StatusUnprocessableEntity &&
		slices.ContainsFunc(refused.Errors, func(e githubapi.Error) bool {
			return strings.Contains(e.Message, "already exists")
		})
}

// existing returns the pull request that already exists according to GitHub, if the call created it. It may be missing
// from GitHub's list, which can lag.
func (h *hub) existing(ctx context.Context, c tool.Call, in NewPullRequest, refused error) (PullRequest, error) {
	all, err := searched(ctx, h, c, time.Time{}, findPulls(in))
	switch {
	case err != nil || all.ours == nil && !all.open:
		return PullRequest{}, tool.Unanswered(refused)
	case all.ours == nil:
		return PullRequest{}, refused
	}
	return *all.ours, nil
}

func openedPull(p *githubapi.PullRequest) PullRequest {
	out := pullRequestOf(p, piece{})
	out.Text = Text{}
	return out
}

// reconcilePull looks for the pull request among those of its head and base, including closed ones. If it is missing,
// the request can be repeated, because GitHub refuses a second one.
func (h *hub) reconcilePull(ctx context.Context, c tool.Call, in NewPullRequest) (tool.Verdict, PullRequest, string,
	error) {
	if _, begun := since(c); !begun {
		return tool.NotDone, PullRequest{}, "", nil
	}
	return h.lookUpPull(ctx, c, in)
}

// lookUpPull is like reconcilePull for a call without a record.
func (h *hub) lookUpPull(ctx context.Context, c tool.Call, in NewPullRequest) (tool.Verdict, PullRequest, string,
	error) {
	all, err := searched(ctx, h, c, time.Time{}, findPulls(in))
	switch {
	case err != nil:
		verdict, reason, err := cannotAsk(err, "pulls.list", "the pull request")
		return verdict, PullRequest{}, reason, err
	case all.ours == nil:
		return tool.NotDone, PullRequest{}, "", nil
	}
	return tool.Done, *all.ours, "", nil
}

// pulls holds the pull requests for a head and a base.
type pulls struct {
	ours *PullRequest
	open bool // whether one of others is open
}

func findPulls(in NewPullRequest) search[pulls] {
	head := in.Head
	if !strings.Contains(head, ":") {
		head = in.Owner + ":" + head
	}
	return func(ctx context.Context, api *githubapi.Client, login, mark string, _ time.Time) (*pulls, error) {
		var out pulls
		err := walk(func(page int) (bool, int, error) {
			all, res, err := api.PullRequests.List(ctx, in.Owner, in.Repo, &githubapi.PullRequestListOptions{
				State: "all", Head: head, Base: in.Base,
				ListOptions: githubapi.ListOptions{Page: page, PerPage: 100}})
			if err != nil {
				return false, 0, err
			}
			for _, p := range all {
				if strings.HasSuffix(p.GetBody(), mark) && p.GetNumber() != 0 && p.GetUser().GetLogin() == login {
					made := openedPull(p)
					out.ours = &made
				} else if p.GetState() == "open" {
					out.open = true
				}
			}
			return out.ours != nil, res.NextPage, nil
		})
		return &out, err
	}
}
