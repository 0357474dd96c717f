package github

import (
	"cmp"
	"context"
	"strings"

	githubapi "github.com/google/go-github/v92/github"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/telemetry/obs"
)

// The names of the tools that examine a change after its commit.
const (
	ListChecks         = "github.listChecks"
	WaitForChecks      = "github.waitForChecks"
	ListReviewComments = "github.listReviewComments"
)

// The limits of a list of checks.
const (
	maxChecks     = 50
	maxCheckLines = 200      // lines of a failed check's output
	maxCheckText  = 12 << 10 // octets of that output, in JSON form
	maxAllChecks  = 40 << 10 // octets of all outputs
)

// OneCommit names a commit.
type OneCommit struct {
	Owner string `json:"owner" jsonschema:"The account that the repository belongs to."`
	Repo  string `json:"repo" jsonschema:"The repository's name."`
	Ref   string `json:"ref" jsonschema:"A commit, or a branch, which means its newest commit."`
}

// Checks are the checks and the statuses of a commit.
type Checks struct {
	State  string  `json:"state"` // none; pending: some have not ended; failure: some failed; success
	Checks []Check `json:"checks"`
	More   bool    `json:"more,omitempty"` // there are more than the listed ones
}

// Check is a check run or a status of a commit.
type Check struct {
	Name    string `json:"name"`
	State   string `json:"state"`             // pending, success, failure or neutral
	Says    string `json:"says,omitempty"`    // GitHub's own word, such as timed_out
	Title   string `json:"title,omitempty"`   //
	Summary string `json:"summary,omitempty"` //
	Output  string `json:"output,omitempty"`  // of a failed check or of its job's log: the last 200 lines
	NoLog   string `json:"noLog,omitempty"`   // why the log of a failed job is missing
	URL     string `json:"url,omitempty"`
}

func (h *hub) listChecks() *tool.Tool {
	return reader(h, ListChecks, "Lists the checks and statuses of a commit on GitHub, with the last 200 lines of the "+
		"output that a failed check reports, or else of its job's log; null if there is no such commit.",
		inRepository(map[string]int{"ref": 200}),
		OneCommit.check, h.checks)
}

func (in OneCommit) check() error {
	if err := repository(in.Owner, in.Repo); err != nil {
		return err
	}
	if in.Ref == "" {
		return fault.Invalid("ref", "a commit or a branch is required")
	}
	return revision(in.Ref)
}

// checks returns the current checks and statuses of a commit.
func (h *hub) checks(ctx context.Context, api *githubapi.Client, in OneCommit) (*Checks, error) {
	page := githubapi.ListOptions{PerPage: maxChecks}
	statuses, _, err := api.Repositories.GetCombinedStatus(ctx, in.Owner, in.Repo, in.Ref, &page)
	if err != nil {
		return nil, err
	}
	runs, _, err := api.Checks.ListCheckRunsForRef(ctx, in.Owner, in.Repo, statuses.GetSHA(),
		&githubapi.ListCheckRunsOptions{ListOptions: page})
	if err != nil {
		return nil, err
	}
	out := checksOf(runs.CheckRuns, statuses.Statuses)
	out.More = runs.GetTotal() > len(runs.CheckRuns) || statuses.GetTotalCount() > len(statuses.Statuses)
	return out, h.addLogs(ctx, api, in, runs.CheckRuns, out.Checks)
}

func checksOf(runs []*githubapi.CheckRun, statuses []*githubapi.RepoStatus) *Checks {
	out, left := &Checks{Checks: []Check{}}, maxAllChecks
	for _, r := range runs {
		c := Check{Name: clip.Text(r.GetName(), maxLine), Says: cmp.Or(r.GetConclusion(), r.GetStatus()),
			Title: clip.Text(r.GetOutput().GetTitle(), maxLine), URL: clip.Text(r.GetHTMLURL(), maxLine)}
		if c.State = stateOf(c.Says); c.State == stateFailure {
			c.Summary = clip.Text(obs.RemoveSecrets(r.GetOutput().GetSummary()), maxExcerpt)
			c.Output = lastLines(obs.RemoveSecrets(r.GetOutput().GetText()), min(maxCheckText, left))
			left -= clip.EncodedLen(c.Output)
		}
		out.Checks = append(out.Checks, c)
	}
	for _, s := range statuses {
		out.Checks = append(out.Checks, Check{Name: clip.Text(s.GetContext(), maxLine), State: stateOf(s.GetState()),
			Says: s.GetState(), Summary: clip.Text(s.GetDescription(), maxLine),
			URL: clip.Text(s.GetTargetURL(), maxLine)})
	}
	out.State = overall(out.Checks)
	return out
}

// The states of a check.
const (
	stateNone    = "none" // of a commit without checks
	statePending = "pending"
	stateSuccess = "success"
	stateFailure = "failure"
	stateNeutral = "neutral"
)

// stateOf converts GitHub's word for the state of a check. An unknown word counts as pending.
func stateOf(word string) string {
	switch word {
	case "success":
		return stateSuccess
	case "failure", "error", "timed_out", "cancelled", "action_required", "startup_failure", "stale":
		return stateFailure
	case "neutral", "skipped":
		return stateNeutral
	}
	return statePending
}

// overall returns the combined state of a commit's checks.
func overall(all []Check) string {
	if len(all) == 0 {
		return stateNone
	}
	state := stateSuccess
	for _, c := range all {
		switch {
		case c.State == stateFailure:
			return stateFailure
		case c.State == statePending:
			state = statePending
		}
	}
	return state
}

// lastLines returns the last lines of a text, at most most octets in JSON form. It shortens long lines.
func lastLines(text string, most int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	from, size := len(lines), 0
	for from > 0 && len(lines)-from < maxCheckLines {
		lines[from-1] = clip.Text(lines[from-1], maxLine)
		if size += clip.EncodedLen(lines[from-1]) + len(`\n`); size > most {
			break
		}
		from--
	}
	return strings.Join(lines[from:], "\n")
}

// ReviewComments are the comments on the lines of a pull request, oldest first.
type ReviewComments struct {
	Comments []ReviewComment `json:"comments"`
	More     bool            `json:"more,omitempty"` // whether there is another page
}

// ReviewComment is a comment on a line of a pull request.
type ReviewComment struct {
	ID        int64  `json:"id"`
	InReplyTo int64  `json:"inReplyTo,omitempty"` // ID of the comment that it answers
	Author    string `json:"author,omitempty"`
	Path      string `json:"path"`
	Line      int    `json:"line,omitempty"` // of the newest commit; 0: the line is gone
	Hunk      string `json:"hunk,omitempty"` // the part of the diff around the line
	Body      string `json:"body,omitempty"`
	URL       string `json:"url"`
	CreatedAt string `json:"createdAt,omitempty"`
}

// PullRequestPage names a pull request and a page.
type PullRequestPage struct {
	OnePullRequest
	Page int `json:"page,omitempty" jsonschema:"From 1 on; left out: the first."`
}

func (h *hub) listReviewComments() *tool.Tool {
	return reader(h, ListReviewComments, "Lists the comments on the lines of a pull request, oldest first; null if "+
		"there is none that the user may see.",
		inRepository(map[string]int{"prNumber": maxNumber, "page": 1000}),
		func(in PullRequestPage) error { return repository(in.Owner, in.Repo) },
		func(ctx context.Context, api *githubapi.Client, in PullRequestPage) (*ReviewComments, error) {
			all, res, err := api.PullRequests.ListComments(ctx, in.Owner, in.Repo, in.PRNumber,
				&githubapi.PullRequestListCommentsOptions{
					ListOptions: githubapi.ListOptions{Page: in.Page, PerPage: comments}})
			if err != nil {
				return nil, err
			}
			out := ReviewComments{Comments: []ReviewComment{}, More: res.NextPage != 0}
			for _, c := range all {
				out.Comments = append(out.Comments, reviewCommentOf(c))
			}
			return &out, nil
		})
}

func reviewCommentOf(c *githubapi.PullRequestComment) ReviewComment {
	return ReviewComment{ID: c.GetID(), InReplyTo: c.GetInReplyTo(), Author: c.GetUser().GetLogin(),
		Path: clip.Text(c.GetPath(), maxLine), Line: c.GetLine(), Hunk: clip.Text(c.GetDiffHunk(), maxExcerpt),
		Body: clip.Text(withoutMark(c.GetBody()), maxExcerpt), URL: clip.Text(c.GetHTMLURL(), maxLine),
		CreatedAt: at(c.GetCreatedAt())}
}
