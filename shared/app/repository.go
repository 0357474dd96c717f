package app

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/plan"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/engine/planner"
)

// repositoryTools are the tools of package tools/github, which only the planner has. Most programs know only their
// names.
var repositoryTools = []string{"github.closeIssue", "github.closePullRequest", "github.commitFiles",
	"github.createComment", "github.createIssue", "github.createPullRequest", "github.createRepository",
	"github.listChecks", "github.listFiles", "github.listIssues", "github.listPullRequests",
	"github.listRepositories", "github.listReviewComments", "github.readFile",
	"github.readIssue", "github.readPullRequest", "github.replyToReviewComment", "github.retrieveRepository",
	"github.updateIssue", "github.updatePullRequest", "github.waitForChecks"}

// The limits of the repository's state at the start of a session, in bytes, and of its issues and pull requests. The
// paths of its files get what the other parts leave of maxState.
const (
	maxState  = 32 << 10
	maxAbout  = 1 << 10
	maxReadme = 6 << 10
	maxGuide  = 10 << 10
	maxTitle  = 120
	maxOpen   = 30 // of issues and of pull requests each
)

// looker reads a repository with the tools, as its user's account sees it.
type looker struct {
	tools tool.Set
	uid   string
	repo  plan.Repo
}

// repositoryState implements planner.Planner.Repository. It reads the repository's description, the head commit of the
// default branch, the paths of its files, the open issues and pull requests, the README, and AGENT.md or else
// AGENTS.md.
func repositoryState(tools tool.Set) func(ctx context.Context, uid string, repo plan.Repo) (planner.Repository, error) {
	return func(ctx context.Context, uid string, repo plan.Repo) (planner.Repository, error) {
		return looker{tools, uid, repo}.state(ctx)
	}
}

func (l looker) state(ctx context.Context) (planner.Repository, error) {
	var about *struct {
		Description   string `json:"description"`
		Private       bool   `json:"private"`
		DefaultBranch string `json:"defaultBranch"`
	}
	if err := l.look(ctx, "github.retrieveRepository", nil, &about); err != nil {
		return planner.Repository{}, err
	}
	if about == nil {
		return planner.Repository{}, fault.New(fault.Auth, fault.CodeNotFound,
			"Your GitHub account cannot see the repository %s.", l.repo)
	}
	paths, commit, err := l.files(ctx)
	if err != nil {
		return planner.Repository{}, err
	}
	head := fmt.Sprintf("Description: %s\nDefault branch: %s\n", clip.Text(oneLine(about.Description), maxAbout),
		clip.Text(oneLine(about.DefaultBranch), maxTitle))
	if commit != "" {
		head += "Its head commit: " + clip.Text(oneLine(commit), maxTitle) + "\n"
	}
	open, err := l.open(ctx)
	if err != nil {
		return planner.Repository{}, err
	}
	text, excerpts, err := l.texts(ctx, commit)
	if err != nil {
		return planner.Repository{}, err
	}
	// Text that others have opened comes first, so no file name can pass for its heading.
	before := head + open + "\nFiles:\n"
	return planner.Repository{State: before + clip.Lines(paths, maxState-len(before)-len(text)) + text,
		Private: about.Private, Excerpts: excerpts}, nil
}

// oneLine returns the text without line breaks, so it cannot pass for another part of the state.
func oneLine(s string) string { return strings.NewReplacer("\n", " ", "\r", " ").Replace(s) }

// files returns the paths of the files, one on each line, and their commit.
func (l looker) files(ctx context.Context) (paths, commit string, err error) {
	var tree *struct {
		Commit    string
		Files     []struct{ Path string }
		Truncated bool
	}
	if err := l.look(ctx, "github.listFiles", nil, &tree); err != nil || tree == nil {
		return "", "", err
	}
	var b strings.Builder
	for _, f := range tree.Files {
		b.WriteString(oneLine(f.Path) + "\n")
	}
	if tree.Truncated {
		b.WriteString("(and more)\n")
	}
	return b.String(), tree.Commit, nil
}

// opened is an open issue or pull request.
type opened struct {
	Number int
	Title  string
}

// open returns the newest open issues and pull requests, one on each line.
func (l looker) open(ctx context.Context) (string, error) {
	var list *struct{ Issues, PullRequests []opened }
	if err := l.look(ctx, "github.listIssues", nil, &list); err != nil || list == nil {
		return "", err
	}
	if err := l.look(ctx, "github.listPullRequests", nil, &list); err != nil || list == nil {
		return "", err
	}
	if len(list.Issues)+len(list.PullRequests) == 0 {
		return "", nil
	}
	var b strings.Builder
	b.WriteString(run.OpenHeading)
	writeList := func(what string, all []opened) {
		for _, o := range all[:min(len(all), maxOpen)] {
			fmt.Fprintf(&b, "#%d%s %s\n", o.Number, what, clip.Text(oneLine(o.Title), maxTitle))
		}
	}
	writeList("", list.Issues)
	writeList(" (pull request)", list.PullRequests)
	return b.String(), nil
}

// texts returns the README and AGENT.md, or else AGENTS.md, at the commit. cut lists those that are shortened.
func (l looker) texts(ctx context.Context, commit string) (text string, cut []run.Excerpt, err error) {
	guide := false
	for _, f := range []struct {
		path  string
		most  int
		guide bool
	}{{"README.md", maxReadme, false}, {"AGENT.md", maxGuide, true}, {"AGENTS.md", maxGuide, true}} {
		if f.guide && guide {
			continue
		}
		shown, excerpt, err := l.file(ctx, commit, f.path, f.most)
		if err != nil {
			return "", nil, err
		}
		guide = f.guide && shown != ""
		text += shown
		if excerpt != nil {
			cut = append(cut, *excerpt)
		}
	}
	return text, cut, nil
}

// file returns a file after its name, or "" if it does not exist, and an excerpt record if the file is shortened.
func (l looker) file(ctx context.Context, commit, path string, most int) (string, *run.Excerpt, error) {
	var f *struct {
		Content string
		Size    int
	}
	args := map[string]any{"path": path}
	if commit != "" {
		args["ref"] = commit
	}
	if err := l.look(ctx, "github.readFile", args, &f); err != nil || f == nil {
		return "", nil, err
	}
	shown := clip.Prefix(f.Content, most)
	if len(shown) >= f.Size {
		return fmt.Sprintf("\n%s:\n%s\n", path, shown), nil, nil
	}
	return fmt.Sprintf("\n%s, the first %d of %d bytes:\n%s\n", path, len(shown), f.Size, shown),
		&run.Excerpt{Path: path, Shown: len(shown), Size: f.Size}, nil
}

// maxCommentPages is the maximum number of pages of a pull request's comments that are read: 500 comments.
const maxCommentPages = 25

// ownComments implements planner.Planner.Comments.
func ownComments(tools tool.Set) func(ctx context.Context, uid string, repo plan.Repo, number int) ([]planner.Comment,
	error) {
	return func(ctx context.Context, uid string, repo plan.Repo, number int) ([]planner.Comment, error) {
		return looker{tools, uid, repo}.ownComments(ctx, number)
	}
}

func (l looker) ownComments(ctx context.Context, number int) (own []planner.Comment, err error) {
	const list = "github.listReviewComments"
	account, err := l.tools[list].Place(ctx, tool.Scope{UID: l.uid})
	if err != nil {
		return nil, err
	}
	for page := 1; page <= maxCommentPages; page++ {
		var got *struct {
			Comments []struct {
				planner.Comment
				Author string
			}
			More bool
		}
		err := l.look(ctx, list, map[string]any{"prNumber": number, "page": page}, &got)
		if err != nil || got == nil {
			return own, err
		}
		for _, c := range got.Comments {
			if strings.EqualFold(c.Author, account.Name) {
				own = append(own, c.Comment)
			}
		}
		if !got.More {
			break
		}
	}
	return own, nil
}

// look calls a tool that reads the repository.
func (l looker) look(ctx context.Context, name string, more map[string]any, into any) error {
	args := map[string]any{"owner": l.repo.Owner(), "repo": l.repo.Name()}
	for k, v := range more {
		args[k] = v
	}
	t := l.tools[name]
	given, err := strictjson.Marshal(args)
	if err != nil {
		return err
	}
	canonical, err := t.Normalize(given)
	if err != nil {
		return err
	}
	at, err := t.Place(ctx, tool.Scope{UID: l.uid})
	if err != nil {
		return err
	}
	result, err := t.Execute(ctx, tool.Call{UID: l.uid, Place: at, Args: canonical})
	switch {
	case tool.IsTransient(err):
		return fault.Unavailable("The repository could not be read just now. Please try again.", err)
	case err != nil:
		return err
	}
	return json.Unmarshal(result, into)
}
