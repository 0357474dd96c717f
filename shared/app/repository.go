package app

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/countersign-run/countersign/shared/clip"
	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/plan"
	"github.com/countersign-run/countersign/shared/run"
	"github.com/countersign-run/countersign/shared/strictjson"
	"github.com/countersign-run/countersign/shared/tool"
)

// repositoryTools are the tools of GitHub (package tools/github), which only the planner has. Most programs know them
// by their names alone.
var repositoryTools = []string{"github.closeIssue", "github.closePullRequest", "github.commitFiles",
	"github.createComment", "github.createIssue", "github.createPullRequest", "github.createRepository",
	"github.listFiles", "github.listIssues", "github.listRepositories", "github.readFile", "github.readIssue",
	"github.readPullRequest", "github.retrieveRepository", "github.updateIssue", "github.updatePullRequest"}

// The bounds of what is told of a repository when a session begins, in bytes, and the number of its issues.
const (
	maxPaths  = 48 << 10
	maxReadme = 16 << 10
	maxGuide  = 32 << 10
	maxIssues = 30
)

// looker reads a repository with the tools, as a plan would: as its user sees it.
type looker struct {
	tools tool.Set
	uid   string
	repo  plan.Repo
}

// repositoryState returns what planner.Planner.Repository is: it reads the repository's description, the paths of its
// files, its open issues, its README and its AGENT.md, or else AGENTS.md.
func repositoryState(tools tool.Set) func(ctx context.Context, uid string, repo plan.Repo) (string, bool, error) {
	return func(ctx context.Context, uid string, repo plan.Repo) (string, bool, error) {
		return looker{tools, uid, repo}.state(ctx)
	}
}

func (l looker) state(ctx context.Context) (state string, private bool, err error) {
	var about *struct {
		Description   string `json:"description"`
		Private       bool   `json:"private"`
		DefaultBranch string `json:"defaultBranch"`
	}
	if err := l.look(ctx, "github.retrieveRepository", nil, &about); err != nil {
		return "", false, err
	}
	if about == nil {
		return "", false, fault.New(fault.Auth, fault.CodeNotFound,
			"Your GitHub account sees no repository %s.", l.repo)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Description: %s\nDefault branch: %s\n", oneLine(about.Description), about.DefaultBranch)
	if err := l.files(ctx, &b); err != nil {
		return "", false, err
	}
	if err := l.issues(ctx, &b); err != nil {
		return "", false, err
	}
	if _, err := l.file(ctx, &b, "README.md", maxReadme); err != nil {
		return "", false, err
	}
	if found, err := l.file(ctx, &b, "AGENT.md", maxGuide); err != nil || found {
		return b.String(), about.Private, err
	}
	_, err = l.file(ctx, &b, "AGENTS.md", maxGuide)
	return b.String(), about.Private, err
}

// oneLine returns the text without line breaks, so that none can pass for another part of the state.
func oneLine(s string) string { return strings.NewReplacer("\n", " ", "\r", " ").Replace(s) }

func (l looker) files(ctx context.Context, b *strings.Builder) error {
	var tree *struct {
		Files     []struct{ Path string }
		Truncated bool
	}
	if err := l.look(ctx, "github.listFiles", nil, &tree); err != nil || tree == nil {
		return err
	}
	var paths strings.Builder
	for _, f := range tree.Files {
		paths.WriteString(oneLine(f.Path) + "\n")
	}
	fmt.Fprintf(b, "\nFiles:\n%s", clip.Text(paths.String(), maxPaths))
	if tree.Truncated {
		b.WriteString("(and more)\n")
	}
	return nil
}

func (l looker) issues(ctx context.Context, b *strings.Builder) error {
	var list *struct {
		Issues []struct {
			Number int
			Title  string
		}
	}
	if err := l.look(ctx, "github.listIssues", nil, &list); err != nil || list == nil {
		return err
	}
	b.WriteString(run.OpenHeading)
	for _, i := range list.Issues[:min(len(list.Issues), maxIssues)] {
		fmt.Fprintf(b, "#%d %s\n", i.Number, oneLine(i.Title))
	}
	return nil
}

// file adds a file, if there is one that is text.
func (l looker) file(ctx context.Context, b *strings.Builder, path string, most int) (found bool, err error) {
	var f *struct{ Content string }
	if err := l.look(ctx, "github.readFile", map[string]any{"path": path}, &f); err != nil || f == nil {
		return false, err
	}
	fmt.Fprintf(b, "\n%s:\n%s\n", path, clip.Text(f.Content, most))
	return true, nil
}

// look makes one call of a tool that reads the repository.
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
