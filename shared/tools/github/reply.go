package github

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	githubapi "github.com/google/go-github/v92/github"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// ReplyToReviewComment is the tool's name for the model.
const ReplyToReviewComment = "github.replyToReviewComment"

const maxCommentID = 1<<53 - 1 // the largest integer that JSON carries exactly

// NewReply holds the arguments of replyToReviewComment.
type NewReply struct {
	Owner     string `json:"owner" jsonschema:"The account that the repository belongs to."`
	Repo      string `json:"repo" jsonschema:"The repository's name."`
	PRNumber  int    `json:"prNumber"`
	CommentID int64  `json:"commentId" jsonschema:"The ID of a comment from github.listReviewComments."`
	Body      string `json:"body" jsonschema:"Markdown."`
}

// replyToReviewComment returns the tool that replies to a comment on a line. A grant names the pull request, but not
// the comment, because comments are written after the plan.
func (h *hub) replyToReviewComment() *tool.Tool {
	return marking(h, tool.Def[NewReply, ReviewComment]{
		Name: ReplyToReviewComment,
		Description: "Writes one reply to a comment on a line of a pull request of GitHub, in the user's own " +
			"account. The user sees it in full and approves it first.",
		Refine: inRepository(map[string]int{"prNumber": maxNumber, "commentId": maxCommentID,
			"body": MaxBody}),
		Normalize: normalReply,
		Targets:   func(in NewReply) []tool.Target { return reached(in.Owner, in.Repo, nil) },
		Pinned: func(in NewReply) any {
			return struct {
				NewReply
				CommentID int64  `json:"commentId,omitempty"` // both fields shadow embedded ones, which are then not pinned
				Body      string `json:"body,omitempty"`
			}{NewReply: in}
		},
		Preview: func(in NewReply) tool.Preview {
			c := newCard("Reply to a review comment on GitHub", in.Owner, in.Repo)
			c.number("Pull request", in.PRNumber)
			c.AddField("Comment", fmt.Sprintf("#discussion_r%d", in.CommentID))
			c.body(in.Body)
			return c.Preview
		},
		Link: func(_ tool.Place, made ReviewComment) string { return made.URL },
		Summary: func(in NewReply) string {
			return fmt.Sprintf("Replied to a review comment on #%d of %s/%s.", in.PRNumber, in.Owner, in.Repo)
		},
		Prepare: h.beginReply,
		Execute: h.makeReply,
	}, "the reply", findReply)
}

func normalReply(in NewReply) (NewReply, error) {
	if err := repository(in.Owner, in.Repo); err != nil {
		return in, err
	}
	if strings.TrimSpace(in.Body) == "" {
		return in, fault.Invalid("body", "the reply is empty")
	}
	var err error
	in.Body, err = text("body", in.Body, MaxBody)
	return in, err
}

// beginReply reads the comment. The handle contains the comment that started its conversation, because GitHub accepts
// replies only to that one.
func (h *hub) beginReply(ctx context.Context, c tool.Call, in NewReply) (string, error) {
	api, err := h.client(ctx, c)
	if err != nil {
		return "", err
	}
	to, res, err := api.PullRequests.GetComment(ctx, in.Owner, in.Repo, in.CommentID)
	switch {
	case err != nil:
		return "", unlooked(err, "pulls.getReviewComment")
	case to.GetID() == 0 || to.GetPullRequestURL() == "":
		return "", odd()
	case !strings.HasSuffix(to.GetPullRequestURL(), fmt.Sprintf("/pulls/%d", in.PRNumber)):
		return "", fault.New(fault.Tool, "provider_refused",
			"The comment belongs to another pull request. Nothing was changed.")
	}
	b := h.began(res)
	b.Conversation = cmp.Or(to.GetInReplyTo(), to.GetID())
	return b.handle()
}

func (h *hub) makeReply(ctx context.Context, c tool.Call, in NewReply) (ReviewComment, error) {
	var b begun
	if err := json.Unmarshal([]byte(c.Handle), &b); err != nil || b.Conversation == 0 {
		return ReviewComment{}, noRecord()
	}
	api, err := h.client(ctx, c)
	if err != nil {
		return ReviewComment{}, err
	}
	req, err := api.NewRequest(ctx, http.MethodPost, fmt.Sprintf("repos/%s/%s/pulls/%d/comments/%d/replies", in.Owner,
		in.Repo, in.PRNumber, b.Conversation), map[string]string{"body": marked(in.Body, c.ActionID)})
	if err != nil {
		return ReviewComment{}, fault.New(fault.Tool, fault.CodeInternal, "The request to GitHub could not be "+
			"prepared.").Because(err)
	}
	var made githubapi.PullRequestComment
	switch _, err := api.Do(req, &made); {
	case err != nil:
		return ReviewComment{}, failed(err, "pulls.createReplyForReviewComment", "the reply")
	case made.GetID() == 0 || made.GetBody() == "":
		return ReviewComment{}, unread("the reply")
	}
	return createdReply(&made), nil
}

// createdReply returns a reply that the call created, without its text, which is part of the call.
func createdReply(c *githubapi.PullRequestComment) ReviewComment {
	out := reviewCommentOf(c)
	out.Body, out.Hunk = "", ""
	return out
}

func findReply(in NewReply) search[ReviewComment] {
	return func(ctx context.Context, api *githubapi.Client, login, mark string, since time.Time) (*ReviewComment,
		error) {
		return newestOf(func(page githubapi.ListOptions) ([]*githubapi.PullRequestComment, *githubapi.Response, error) {
			return api.PullRequests.ListComments(ctx, in.Owner, in.Repo, in.PRNumber,
				&githubapi.PullRequestListCommentsOptions{Since: since, ListOptions: page})
		}, func(c *githubapi.PullRequestComment) bool {
			return strings.HasSuffix(c.GetBody(), mark) && c.GetID() != 0 && c.GetUser().GetLogin() == login
		}, createdReply)
	}
}
