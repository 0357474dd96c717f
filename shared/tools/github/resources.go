package github

import (
	"slices"
	"strings"
	"time"

	githubapi "github.com/google/go-github/v92/github"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/clip"
)

// The limits of reads, in octets.
const (
	maxText    = 32 << 10 // of a single body, in JSON form
	maxExcerpt = 1 << 10  // of a body in a list, and of one comment
	maxLine    = 1 << 10
)

// Text is the body of an issue or of a pull request, or a part of it.
type Text struct {
	Body       string `json:"body,omitempty"`
	BodyOffset int    `json:"bodyOffset,omitempty"`
	BodySize   int    `json:"bodySize,omitempty"` // octets of the whole body, if Body is only a part
}

// piece selects a part of a body: it starts at offset and has at most most octets in JSON form.
type piece struct{ offset, most int }

func textOf(body string, p piece) Text {
	body = withoutMark(body)
	shown, from, err := tool.Piece(body, p.offset, 0, p.most)
	t := Text{Body: shown, BodyOffset: from}
	if err != nil || len(shown) < len(body) {
		t.BodySize = len(body)
	}
	return t
}

// Repository is a repository in the form that the model reads.
type Repository struct {
	Owner         string `json:"owner"`
	Name          string `json:"name"`
	Description   string `json:"description,omitempty"`
	Private       bool   `json:"private"`
	DefaultBranch string `json:"defaultBranch,omitempty"`
	OpenIssues    int    `json:"openIssues,omitempty"` // includes pull requests
	Archived      bool   `json:"archived,omitempty"`
	URL           string `json:"url"`
}

func repositoryOf(r *githubapi.Repository) Repository {
	return Repository{Owner: r.GetOwner().GetLogin(), Name: r.GetName(),
		Description: clip.Text(r.GetDescription(), maxLine), Private: r.GetPrivate(),
		DefaultBranch: r.GetDefaultBranch(), OpenIssues: r.GetOpenIssuesCount(), Archived: r.GetArchived(),
		URL: clip.Text(r.GetHTMLURL(), maxLine)}
}

// Issue is an issue in the form that the model reads.
type Issue struct {
	Number int    `json:"number"`
	Title  string `json:"title"`
	Text
	State     string    `json:"state"`
	Author    string    `json:"author,omitempty"`
	Labels    []string  `json:"labels,omitempty"`
	Assignees []string  `json:"assignees,omitempty"`
	URL       string    `json:"url"`
	CreatedAt string    `json:"createdAt,omitempty"`
	UpdatedAt string    `json:"updatedAt,omitempty"`
	Comments  []Comment `json:"comments,omitempty"` // the first 20
	Count     int       `json:"commentCount,omitempty"`
}

// Comment is a comment on an issue or a pull request.
type Comment struct {
	ID        int64  `json:"id"`
	Author    string `json:"author,omitempty"`
	Body      string `json:"body,omitempty"`
	URL       string `json:"url"`
	CreatedAt string `json:"createdAt,omitempty"`
}

// PullRequest is a pull request in the form that the model reads.
type PullRequest struct {
	Number int    `json:"number"`
	Title  string `json:"title"`
	Text
	State     string    `json:"state"`
	Draft     bool      `json:"draft,omitempty"`
	Merged    bool      `json:"merged,omitempty"`
	Head      string    `json:"head,omitempty"` // owner:branch
	Base      string    `json:"base,omitempty"`
	Author    string    `json:"author,omitempty"`
	Labels    []string  `json:"labels,omitempty"`
	URL       string    `json:"url"`
	CreatedAt string    `json:"createdAt,omitempty"`
	UpdatedAt string    `json:"updatedAt,omitempty"`
	Comments  []Comment `json:"comments,omitempty"` // the first 20
}

// issueOf converts an issue. The issue may be nil.
func issueOf(i *githubapi.Issue, part piece) Issue {
	if i == nil {
		return Issue{}
	}
	return Issue{Number: i.GetNumber(), Title: clip.Text(i.GetTitle(), maxLine),
		Text: textOf(i.GetBody(), part), State: i.GetState(), Author: i.GetUser().GetLogin(),
		Labels: labelsOf(i.Labels), Assignees: loginsOf(i.Assignees), URL: clip.Text(i.GetHTMLURL(), maxLine),
		CreatedAt: at(i.GetCreatedAt()), UpdatedAt: at(i.GetUpdatedAt()), Count: i.GetComments()}
}

func commentOf(c *githubapi.IssueComment) Comment {
	return Comment{ID: c.GetID(), Author: c.GetUser().GetLogin(), Body: clip.Text(withoutMark(c.GetBody()), maxExcerpt),
		URL: clip.Text(c.GetHTMLURL(), maxLine), CreatedAt: at(c.GetCreatedAt())}
}

// pullRequestOf converts a pull request. It may be nil.
func pullRequestOf(p *githubapi.PullRequest, part piece) PullRequest {
	if p == nil {
		return PullRequest{}
	}
	return PullRequest{Number: p.GetNumber(), Title: clip.Text(p.GetTitle(), maxLine),
		Text: textOf(p.GetBody(), part), State: p.GetState(), Draft: p.GetDraft(),
		Merged: p.GetMerged(),
		Head:   clip.Text(p.GetHead().GetLabel(), maxLine), Base: clip.Text(p.GetBase().GetRef(), maxLine),
		Author: p.GetUser().GetLogin(), Labels: labelsOf(p.Labels), URL: clip.Text(p.GetHTMLURL(), maxLine),
		CreatedAt: at(p.GetCreatedAt()), UpdatedAt: at(p.GetUpdatedAt())}
}

func labelsOf(all []*githubapi.Label) (names []string) {
	for _, l := range all[:min(len(all), 100)] {
		names = append(names, clip.Text(l.GetName(), maxLine))
	}
	slices.Sort(names)
	return names
}

func loginsOf(all []*githubapi.User) (logins []string) {
	for _, u := range all[:min(len(all), 100)] {
		logins = append(logins, clip.Text(u.GetLogin(), maxLine))
	}
	slices.Sort(logins)
	return logins
}

func at(t githubapi.Timestamp) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

// sameNames reports whether two sorted sets have the same names, ignoring case: GitHub keeps the case in which a label
// or a login was first written.
func sameNames(a, b []string) bool {
	return slices.EqualFunc(lower(a), lower(b), func(x, y string) bool { return x == y })
}

func lower(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = strings.ToLower(n)
	}
	slices.Sort(out)
	return out
}
