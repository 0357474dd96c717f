package github

import (
	"context"
	"fmt"

	githubapi "github.com/google/go-github/v92/github"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// The names of the tools that change existing objects.
const (
	UpdateIssue       = "github.updateIssue"
	CloseIssue        = "github.closeIssue"
	UpdatePullRequest = "github.updatePullRequest"
	ClosePullRequest  = "github.closePullRequest"
)

// ChangedIssue holds the arguments of updateIssue.
type ChangedIssue struct {
	Owner       string       `json:"owner" jsonschema:"The account that the repository belongs to."`
	Repo        string       `json:"repo" jsonschema:"The repository's name."`
	IssueNumber int          `json:"issueNumber"`
	Updates     IssueUpdates `json:"updates" jsonschema:"What is to be different; the rest stays as it is."`
	UpdatedAt   string       `json:"updatedAt,omitempty" jsonschema:"The updatedAt with which you have read it: if it was changed since, nothing is done."`
}

// IssueUpdates holds the fields of an issue that can be changed. A set of names replaces the existing set.
type IssueUpdates struct {
	Title     *string   `json:"title,omitempty"`
	Body      *string   `json:"body,omitempty"`
	State     *string   `json:"state,omitempty" jsonschema:"open or closed"`
	Labels    *[]string `json:"labels,omitempty" jsonschema:"All labels that it is to have."`
	Assignees *[]string `json:"assignees,omitempty" jsonschema:"The logins of all who are to work on it."`
}

// ChangedPull holds the arguments of updatePullRequest.
type ChangedPull struct {
	Owner     string      `json:"owner" jsonschema:"The account that the repository belongs to."`
	Repo      string      `json:"repo" jsonschema:"The repository's name."`
	PRNumber  int         `json:"prNumber"`
	Updates   PullUpdates `json:"updates" jsonschema:"What is to be different; the rest stays as it is."`
	UpdatedAt string      `json:"updatedAt,omitempty" jsonschema:"The updatedAt with which you have read it: if it was changed since, nothing is done."`
}

// PullUpdates are the fields of a pull request that can be changed.
type PullUpdates struct {
	Title *string `json:"title,omitempty"`
	Body  *string `json:"body,omitempty"`
	State *string `json:"state,omitempty" jsonschema:"open or closed"`
	Base  *string `json:"base,omitempty" jsonschema:"The branch that it is to go into."`
}

func refineUpdates(number string) func(*jsonschema.Schema) {
	return func(s *jsonschema.Schema) {
		inRepository(map[string]int{number: maxNumber, "updatedAt": 40})(s)
		if u := s.Properties["updates"]; u != nil {
			bounded(u, map[string]int{"title": MaxTitle, "body": MaxBody})
			u.Properties["state"].Enum = []any{"open", "closed"}
		}
	}
}

// change is a change of an issue or of a pull request, from any tool.
type change struct {
	owner, repo string
	number      int
	wanted      wanted
	seen        string // the updatedAt that the model has read; empty: not given
}

func (in ChangedIssue) change() change {
	u := in.Updates
	return change{in.Owner, in.Repo, in.IssueNumber,
		wanted{Title: u.Title, Body: u.Body, State: u.State, Labels: u.Labels, Assignees: u.Assignees}, in.UpdatedAt}
}

func (in ChangedPull) change() change {
	u := in.Updates
	return change{in.Owner, in.Repo, in.PRNumber,
		wanted{Title: u.Title, Body: u.Body, State: u.State, Base: u.Base}, in.UpdatedAt}
}

func closing(owner, repo string, number int) change {
	return change{owner, repo, number, wanted{State: new("closed")}, ""}
}

// check normalizes a change. Its pointers are those of the arguments.
func (c change) check() error {
	if err := repository(c.owner, c.repo); err != nil {
		return err
	}
	w := c.wanted
	if w == (wanted{}) {
		return fault.Invalid("updates", "at least one change is required")
	}
	if w.Title != nil {
		var err error
		if *w.Title, err = line("updates/title", *w.Title); err != nil {
			return err
		}
	}
	if w.Base != nil {
		if err := branch("updates/base", *w.Base); err != nil {
			return err
		}
		if w.State != nil && *w.State == "closed" {
			return fault.Invalid("updates/base", "the base of a closed pull request cannot be changed")
		}
	}
	if w.Body != nil {
		var err error
		if *w.Body, err = text("updates/body", *w.Body, MaxBody); err != nil {
			return err
		}
	}
	if w.Labels != nil {
		var err error
		if _, err = set("updates/labels", *w.Labels, MaxLabels, isLabel); err != nil {
			return err
		}
		*w.Labels = *sortedAll(w.Labels)
	}
	if w.Assignees != nil {
		var err error
		if _, err = set("updates/assignees", *w.Assignees, MaxAssignees, isLogin); err != nil {
			return err
		}
		*w.Assignees = *sortedAll(w.Assignees)
	}
	return nil
}

// sortedAll returns a sorted set. An empty set stays empty and does not become nil.
func sortedAll(names *[]string) *[]string {
	if names == nil {
		return nil
	}
	all := append([]string{}, sorted(*names)...)
	return &all
}

func (c change) preview(title string) tool.Preview {
	v, w := newCard(title, c.owner, c.repo), c.wanted
	v.number("Number", c.number)
	if w.Title != nil {
		v.AddLine("Title", *w.Title)
	}
	if w.State != nil {
		v.AddField("State", *w.State)
	}
	if w.Base != nil {
		v.AddField("Into the branch", *w.Base)
	}
	if w.Labels != nil {
		v.names("Labels", *w.Labels, true)
	}
	if w.Assignees != nil {
		v.names("Assignees", *w.Assignees, true)
	}
	if w.Body != nil {
		v.AddText("Text", *w.Body)
		if *w.Body == "" {
			v.Warn("The text is deleted.")
		}
	}
	v.seen(c.seen)
	return v.Preview
}

func (c change) targets() []tool.Target {
	var people []string
	if c.wanted.Assignees != nil {
		people = *c.wanted.Assignees
	}
	return reached(c.owner, c.repo, people)
}

func (h *hub) updateIssue() *tool.Tool {
	return changing(h, tool.Def[ChangedIssue, Issue]{
		Name: UpdateIssue,
		Description: "Changes an issue of GitHub, in the user's own account. The user sees the new values in full " +
			"and approves them first.",
		Refine: refineUpdates("issueNumber"),
		Normalize: func(in ChangedIssue) (_ ChangedIssue, err error) {
			if in.UpdatedAt, err = moment("updatedAt", in.UpdatedAt); err != nil {
				return in, err
			}
			return in, in.change().check()
		},
		Replaces: func(in ChangedIssue) (all []tool.Text) {
			if in.Updates.Body != nil {
				all = append(all, bodyOf(in.Owner, in.Repo, "issue", in.IssueNumber))
			}
			return all
		},
		Pinned: func(in ChangedIssue) any {
			in.Updates.Title, in.Updates.Body, in.UpdatedAt = nil, nil, ""
			in.Updates.Labels, in.Updates.Assignees = sortedAll(in.Updates.Labels), sortedAll(in.Updates.Assignees)
			return in
		},
		Preview: func(in ChangedIssue) tool.Preview { return in.change().preview("Change an issue on GitHub") },
		Link:    func(_ tool.Place, made Issue) string { return made.URL },
		Summary: func(in ChangedIssue) string {
			return fmt.Sprintf("Changed issue #%d of %s/%s.", in.IssueNumber, in.Owner, in.Repo)
		},
	}, func(in ChangedIssue) there[Issue] { return issueThere(in.change()) })
}

func (h *hub) closeIssue() *tool.Tool {
	of := func(in OneIssue) there[Issue] { return issueThere(closing(in.Owner, in.Repo, in.IssueNumber)) }
	return changing(h, tool.Def[OneIssue, Issue]{
		Name:        CloseIssue,
		Description: "Closes an issue of GitHub, in the user's own account. The user approves it first.",
		Refine:      inRepository(map[string]int{"issueNumber": maxNumber}),
		Normalize:   func(in OneIssue) (OneIssue, error) { return in, repository(in.Owner, in.Repo) },
		Preview:     func(in OneIssue) tool.Preview { return of(in).preview("Close an issue on GitHub") },
		Link:        func(_ tool.Place, made Issue) string { return made.URL },
		Summary: func(in OneIssue) string {
			return fmt.Sprintf("Closed issue #%d of %s/%s.", in.IssueNumber, in.Owner, in.Repo)
		},
	}, of)
}

// issueThere reads and changes an issue.
func issueThere(c change) there[Issue] {
	return there[Issue]{c, "issues",
		func(ctx context.Context, api *githubapi.Client) (state, Issue, error) {
			i, _, err := api.Issues.Get(ctx, c.owner, c.repo, c.number)
			return issueState(i), createdIssue(i), err
		},
		func(ctx context.Context, api *githubapi.Client) (state, Issue, error) {
			r := githubapi.UpdateIssueRequest{Title: c.wanted.Title, Body: c.wanted.Body, State: c.wanted.State}
			if c.wanted.Labels != nil {
				r.Labels = *c.wanted.Labels
			}
			if c.wanted.Assignees != nil {
				r.Assignees = *c.wanted.Assignees
			}
			i, _, err := api.Issues.Update(ctx, c.owner, c.repo, c.number, r)
			return issueState(i), createdIssue(i), err
		}}
}

func issueState(i *githubapi.Issue) state {
	if i == nil || i.GetNumber() == 0 {
		return state{}
	}
	return state{number: i.GetNumber(), updated: at(i.GetUpdatedAt()), Title: i.GetTitle(), Body: i.GetBody(),
		State: i.GetState(), Labels: labelsOf(i.Labels), Assignees: loginsOf(i.Assignees)}
}
