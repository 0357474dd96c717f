package github

import (
	"context"
	"fmt"
	"strings"
	"time"

	githubapi "github.com/google/go-github/v92/github"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// The names of the tools that create objects with a mark.
const (
	CreateIssue   = "github.createIssue"
	CreateComment = "github.createComment"
)

// NewIssue holds the arguments of createIssue.
type NewIssue struct {
	Owner     string   `json:"owner" jsonschema:"The account that the repository belongs to."`
	Repo      string   `json:"repo" jsonschema:"The repository's name."`
	Title     string   `json:"title" jsonschema:"One line."`
	Body      string   `json:"body,omitempty" jsonschema:"Markdown."`
	Labels    []string `json:"labels,omitempty" jsonschema:"Names of labels."`
	Assignees []string `json:"assignees,omitempty" jsonschema:"Logins of who is to work on it."`
}

func (h *hub) createIssue() *tool.Tool {
	return marking(h, tool.Def[NewIssue, Issue]{
		Name: CreateIssue,
		Description: "Creates one issue in a GitHub repository, in the user's own account. The user sees it in full " +
			"and approves it first.",
		Refine:    inRepository(map[string]int{"title": MaxTitle, "body": MaxBody}),
		Normalize: normalIssue,
		Targets:   func(in NewIssue) []tool.Target { return reached(in.Owner, in.Repo, in.Assignees) },
		Pinned: func(in NewIssue) any {
			in.Body, in.Labels, in.Assignees = "", sorted(in.Labels), sorted(in.Assignees)
			return struct {
				NewIssue
				Title string `json:"title,omitempty"` // shadows the embedded field, so that it is not pinned
			}{NewIssue: in}
		},
		Preview: func(in NewIssue) tool.Preview {
			c := newCard("Create an issue on GitHub", in.Owner, in.Repo)
			c.AddLine("Title", in.Title)
			c.names("Labels", in.Labels, len(in.Labels) > 0)
			c.names("Assignees", in.Assignees, len(in.Assignees) > 0)
			c.body(in.Body)
			return c.Preview
		},
		Link:    func(_ tool.Place, made Issue) string { return made.URL },
		Summary: func(in NewIssue) string { return fmt.Sprintf("Created an issue in %s/%s.", in.Owner, in.Repo) },
		Heading: func(in NewIssue) string { return fmt.Sprintf("Issue in %s/%s: %s", in.Owner, in.Repo, in.Title) },
		Prepare: func(ctx context.Context, c tool.Call, in NewIssue) (string, error) {
			return h.inRepositoryBegun(ctx, c, in.Owner, in.Repo)
		},
		Execute: h.makeIssue,
	}, "the issue", findIssue)
}

func normalIssue(in NewIssue) (NewIssue, error) {
	if err := repository(in.Owner, in.Repo); err != nil {
		return in, err
	}
	var err error
	if in.Title, err = line("title", in.Title); err != nil {
		return in, err
	}
	if in.Body, err = text("body", in.Body, MaxBody); err != nil {
		return in, err
	}
	if in.Labels, err = set("labels", in.Labels, MaxLabels, isLabel); err != nil {
		return in, err
	}
	in.Assignees, err = set("assignees", in.Assignees, MaxAssignees, isLogin)
	return in, err
}

func (h *hub) makeIssue(ctx context.Context, c tool.Call, in NewIssue) (Issue, error) {
	api, err := h.clientOfBegun(ctx, c)
	if err != nil {
		return Issue{}, err
	}
	i, _, err := api.Issues.Create(ctx, in.Owner, in.Repo, githubapi.CreateIssueRequest{Title: in.Title,
		Body: new(marked(in.Body, c.ActionID)), Labels: in.Labels, Assignees: in.Assignees})
	switch {
	case err != nil:
		return Issue{}, failed(err, "issues.create", "the issue")
	case i.GetNumber() == 0:
		return Issue{}, unread("the issue")
	}
	return createdIssue(i), nil
}

// createdIssue returns an issue that the call created, without its text, which is part of the call.
func createdIssue(i *githubapi.Issue) Issue {
	out := issueOf(i, piece{})
	out.Text = Text{}
	return out
}

func findIssue(in NewIssue) search[Issue] {
	return func(ctx context.Context, api *githubapi.Client, login, mark string, since time.Time) (*Issue, error) {
		return newestOf(func(page githubapi.ListOptions) ([]*githubapi.Issue, *githubapi.Response, error) {
			return api.Issues.ListByRepo(ctx, in.Owner, in.Repo, &githubapi.IssueListByRepoOptions{State: "all",
				Creator: login, Since: since, Sort: "created", Direction: "desc", ListOptions: page})
		}, func(i *githubapi.Issue) bool {
			return strings.HasSuffix(i.GetBody(), mark) && i.GetNumber() != 0 && !i.IsPullRequest()
		}, createdIssue)
	}
}

// NewComment holds the arguments of createComment.
type NewComment struct {
	Owner       string `json:"owner" jsonschema:"The account that the repository belongs to."`
	Repo        string `json:"repo" jsonschema:"The repository's name."`
	IssueNumber int    `json:"issueNumber" jsonschema:"Of the issue, or of the pull request."`
	Body        string `json:"body" jsonschema:"Markdown."`
}

func (h *hub) createComment() *tool.Tool {
	return marking(h, tool.Def[NewComment, Comment]{
		Name: CreateComment,
		Description: "Writes one comment to an issue or a pull request of GitHub, in the user's own account. The " +
			"user sees it in full and approves it first.",
		Refine: func(s *jsonschema.Schema) {
			inRepository(map[string]int{"issueNumber": maxNumber, "body": MaxBody})(s)
		},
		Normalize: normalComment,
		Targets:   func(in NewComment) []tool.Target { return reached(in.Owner, in.Repo, nil) },
		Pinned: func(in NewComment) any {
			return struct {
				NewComment
				Body string `json:"body,omitempty"` // shadows the embedded field, so that it is not pinned
			}{NewComment: in}
		},
		Preview: func(in NewComment) tool.Preview {
			c := newCard("Write a comment on GitHub", in.Owner, in.Repo)
			c.number("Issue", in.IssueNumber)
			c.body(in.Body)
			return c.Preview
		},
		Link: func(_ tool.Place, made Comment) string { return made.URL },
		Summary: func(in NewComment) string {
			return fmt.Sprintf("Wrote a comment to #%d of %s/%s.", in.IssueNumber, in.Owner, in.Repo)
		},
		Preconditions: func(ctx context.Context, c tool.Call, in NewComment) ([]tool.Precondition, error) {
			i, _, err := h.commented(ctx, c, in)
			if err != nil {
				return nil, err
			}
			return wanted{}.restsOn(issueState(i)), nil
		},
		Prepare: h.beginComment,
		Execute: h.makeComment,
	}, "the comment", findComment)
}

func normalComment(in NewComment) (NewComment, error) {
	if err := repository(in.Owner, in.Repo); err != nil {
		return in, err
	}
	if strings.TrimSpace(in.Body) == "" {
		return in, fault.Invalid("body", "the comment is empty")
	}
	var err error
	in.Body, err = text("body", in.Body, MaxBody)
	return in, err
}

func (h *hub) beginComment(ctx context.Context, c tool.Call, in NewComment) (string, error) {
	_, res, err := h.commented(ctx, c, in)
	if err != nil {
		return "", err
	}
	return h.began(res).handle()
}

// commented reads the issue or the pull request that gets the comment.
func (h *hub) commented(ctx context.Context, c tool.Call, in NewComment) (*githubapi.Issue, *githubapi.Response,
	error) {
	api, err := h.client(ctx, c)
	if err != nil {
		return nil, nil, err
	}
	i, res, err := api.Issues.Get(ctx, in.Owner, in.Repo, in.IssueNumber)
	switch {
	case err != nil:
		return nil, nil, unlooked(err, "issues.get")
	case i.GetNumber() == 0:
		return nil, nil, odd()
	}
	return i, res, nil
}

func (h *hub) makeComment(ctx context.Context, c tool.Call, in NewComment) (Comment, error) {
	api, err := h.clientOfBegun(ctx, c)
	if err != nil {
		return Comment{}, err
	}
	made, _, err := api.Issues.CreateComment(ctx, in.Owner, in.Repo, in.IssueNumber,
		githubapi.IssueCommentRequest{Body: marked(in.Body, c.ActionID)})
	switch {
	case err != nil:
		return Comment{}, failed(err, "issues.createComment", "the comment")
	case made.GetID() == 0 || made.GetBody() == "":
		return Comment{}, unread("the comment")
	}
	return createdComment(made), nil
}

func createdComment(c *githubapi.IssueComment) Comment {
	out := commentOf(c)
	out.Body = ""
	return out
}

func findComment(in NewComment) search[Comment] {
	return func(ctx context.Context, api *githubapi.Client, login, mark string, since time.Time) (*Comment, error) {
		return newestOf(func(page githubapi.ListOptions) ([]*githubapi.IssueComment, *githubapi.Response, error) {
			return api.Issues.ListComments(ctx, in.Owner, in.Repo, in.IssueNumber,
				&githubapi.IssueListCommentsOptions{Since: &since, ListOptions: page})
		}, func(c *githubapi.IssueComment) bool {
			return strings.HasSuffix(c.GetBody(), mark) && c.GetID() != 0 && c.GetUser().GetLogin() == login
		}, createdComment)
	}
}
