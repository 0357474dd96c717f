package github

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	githubapi "github.com/google/go-github/v92/github"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/tools/internal/patch"
	"github.com/countersign-run/countersign/shared/tools/internal/provider"
)

// CommitFiles is the tool's name for the model.
const CommitFiles = "github.commitFiles"

// NewCommit holds the arguments of commitFiles.
type NewCommit struct {
	Owner   string       `json:"owner" jsonschema:"The account that the repository belongs to."`
	Repo    string       `json:"repo" jsonschema:"The repository's name."`
	Branch  string       `json:"branch" jsonschema:"The branch that gets the commit."`
	From    string       `json:"from,omitempty" jsonschema:"The branch from which a new branch is made. Left out: branch is there already."`
	Message string       `json:"message" jsonschema:"What the commit does."`
	Files   []FileChange `json:"files"`

	ContainerID string `json:"containerId,omitempty" jsonschema:"The container of this task that the files with a sha256 are in."`
}

// FileChange is a file of a commit.
type FileChange struct {
	Path    string `json:"path"`
	Content string `json:"content,omitempty" jsonschema:"The whole of the file, as text."`
	Delete  bool   `json:"delete,omitempty" jsonschema:"Whether the file goes."`
	SHA256  string `json:"sha256,omitempty" jsonschema:"In place of content: what docker.readFileInContainer says of the file in the container. Only a file with this sum is committed."`
	Source  string `json:"source,omitempty" jsonschema:"That file, absolute or in /work; left out: the path in /work."`

	Edits []patch.Replacement `json:"edits,omitempty" jsonschema:"In place of content: exact replacements in the file that the branch has. The way to change a file that you have not read to its end."`
	SHA   string              `json:"sha,omitempty" jsonschema:"With edits: the sha that github.readFile returned for the file."`
	Base  *Base               `json:"base,omitempty"`
}

// Committed is the result of commitFiles.
type Committed struct {
	SHA    string `json:"sha"`
	Branch string `json:"branch"`
	URL    string `json:"url"`
}

func (h *hub) commitFiles() *tool.Tool {
	return define(h, tool.Def[NewCommit, Committed]{
		Name: CommitFiles,
		Description: "Makes one commit of text files on a branch of a GitHub repository, in the user's own account. " +
			"The user sees all of it and approves it first.",
		SideEffect: true,
		Refine: func(s *jsonschema.Schema) {
			inRepository(map[string]int{"branch": 200, "from": 200, "message": MaxMessage})(s)
			files := s.Properties["files"]
			files.MinItems, files.MaxItems = jsonschema.Ptr(1), jsonschema.Ptr(MaxFiles)
			bounded(files.Items, map[string]int{"path": maxPath, "content": MaxCommit})
			files.Items.Properties["sha"].Pattern = `^[0-9a-f]{40}$`
			delete(files.Items.Properties, "base")
			h.refineContained(s)
		},
		Normalize: normalCommit,
		Complete:  h.completeCommit,
		Bare:      bareCommit,
		Revise:    reviseCommit,
		Changes:   changesOf,
		Targets:   func(in NewCommit) []tool.Target { return reached(in.Owner, in.Repo, nil) },
		Replaces:  replacedFiles,
		Pinned:    boundCommit,
		Preview:   previewCommit,
		Link:      func(_ tool.Place, made Committed) string { return made.URL },
		Summary: func(in NewCommit) string {
			return fmt.Sprintf("Committed to %s of %s/%s.", in.Branch, in.Owner, in.Repo)
		},
		Prepare: h.prepareCommit, Execute: h.moveBranch, Reconcile: h.reconcileCommit,
	})
}

// normalCommit sorts the files by path, and refuses duplicate paths.
func normalCommit(in NewCommit) (NewCommit, error) {
	if err := repository(in.Owner, in.Repo); err != nil {
		return in, err
	}
	if err := branch("branch", in.Branch); err != nil {
		return in, err
	}
	if in.From != "" {
		if err := branch("from", in.From); err != nil {
			return in, err
		}
		if in.From == in.Branch {
			return in, fault.Invalid("from", "a branch cannot be created from itself")
		}
	}
	if strings.TrimSpace(in.Message) == "" {
		return in, fault.Invalid("message", "must not be empty")
	}
	var err error
	if in.Message, err = text("message", in.Message, MaxMessage); err != nil {
		return in, err
	}
	if in.Files, err = normalFiles(in.Files, in.ContainerID); err != nil {
		return in, err
	}
	return in, checkContainer(in)
}

func normalFiles(files []FileChange, container string) ([]FileChange, error) {
	files, size := slices.Clone(files), 0
	for i, f := range files {
		field := func(name string) string { return fmt.Sprintf("files/%d/%s", i, name) }
		if err := path(field("path"), f.Path); err != nil {
			return nil, err
		}
		if f.Delete && f.Content != "" {
			return nil, fault.Invalid(field("content"), "a deleted file cannot have content")
		}
		var err error
		if files[i], err = normalSource(f, field, container); err != nil {
			return nil, err
		}
		if strings.ContainsRune(f.Content, 0) {
			return nil, fault.Invalid(field("content"), "not text")
		}
		edited, err := normalEdits(f, field)
		if err != nil {
			return nil, err
		}
		if size += len(f.Content) + edited; size > MaxCommit {
			return nil, fault.Invalid("files", "the limit of all files together is %d octets", MaxCommit)
		}
	}
	sortFiles(files)
	for i := range len(files) - 1 {
		if above, next := files[i].Path, files[i+1].Path; above == next || strings.HasPrefix(next, above+"/") {
			return nil, fault.Invalid("files", "a path is duplicated, or is a folder of another path")
		}
	}
	return files, nil
}

// replacedFiles returns the files that the commit replaces completely with the model's text.
func replacedFiles(in NewCommit) (all []tool.Text) {
	for _, f := range in.Files {
		if !f.Delete && f.SHA256 == "" && len(f.Edits) == 0 {
			all = append(all, fileIn(in.Owner, in.Repo, f.Path))
		}
	}
	return all
}

func sortFiles(files []FileChange) {
	slices.SortFunc(files, func(a, b FileChange) int { return strings.Compare(a.Path, b.Path) })
}

func boundCommit(in NewCommit) any {
	in, _ = changesOf(in)
	sortFiles(in.Files)
	return struct {
		NewCommit
		Message string `json:"message,omitempty"` // shadows the embedded field, so that it is not pinned
	}{NewCommit: in}
}

// built is the handle: the commit, which is not on a branch yet, and its parent.
type built struct {
	SHA    string `json:"sha"`
	Parent string `json:"parent"`
	New    bool   `json:"new,omitempty"` // whether the branch is created for it
	URL    string `json:"url"`
}

// prepareCommit creates the commit. As long as no branch contains it, it is invisible, and GitHub eventually drops it.
func (h *hub) prepareCommit(ctx context.Context, c tool.Call, in NewCommit) (string, error) {
	api, err := h.client(ctx, c)
	if err != nil {
		return "", err
	}
	if in.Files, err = h.fill(ctx, c, in); err != nil {
		return "", err
	}
	b, err := build(ctx, api, in)
	var ours *fault.Error
	switch {
	case err != nil && errors.As(err, &ours) && read(err).Proof != provider.NoAccess:
		return "", err
	case err != nil:
		return "", unlooked(err, "git.createCommit")
	case b.SHA == "" || b.Parent == "":
		return "", odd()
	}
	handle, err := json.Marshal(b)
	return string(handle), err
}

func build(ctx context.Context, api *githubapi.Client, in NewCommit) (built, error) {
	at, isNew, err := stand(ctx, api, in)
	if err != nil || at == nil {
		return built{}, err
	}
	there, err := entriesThere(ctx, api, in, at.root)
	if err != nil || there == nil {
		return built{}, err
	}
	files, err := patched(ctx, api, in, there)
	if err != nil {
		return built{}, err
	}
	tree, _, err := api.Git.CreateTree(ctx, in.Owner, in.Repo, at.root, entries(files, there))
	if err != nil || tree.GetSHA() == "" {
		return built{}, err
	}
	if tree.GetSHA() == at.root {
		return built{}, fault.Invalid("files", "the branch has these files already")
	}
	made, _, err := api.Git.CreateCommit(ctx, in.Owner, in.Repo, githubapi.Commit{Message: &in.Message, Tree: tree,
		Parents: []*githubapi.Commit{{SHA: &at.commit}}}, nil)
	return built{made.GetSHA(), at.commit, isNew, made.GetHTMLURL()}, err
}

// ground is the parent of a new commit, with its tree.
type ground struct{ commit, root string }

// stand returns the parent of the new commit, and whether the branch must be created. It returns nil if an answer from
// GitHub cannot be used.
func stand(ctx context.Context, api *githubapi.Client, in NewCommit) (_ *ground, isNew bool, err error) {
	from, isNew, err := base(ctx, api, in)
	if err != nil {
		return nil, false, err
	}
	parent, _, err := api.Git.GetCommit(ctx, in.Owner, in.Repo, from)
	if err != nil || parent.GetTree().GetSHA() == "" {
		return nil, false, err
	}
	return &ground{from, parent.GetTree().GetSHA()}, isNew, nil
}

// base returns the parent of the new commit, and whether the branch must be created.
func base(ctx context.Context, api *githubapi.Client, in NewCommit) (sha string, isNew bool, err error) {
	ref, _, err := api.Git.GetRef(ctx, in.Owner, in.Repo, "heads/"+in.Branch)
	switch {
	case err != nil && read(err).Proof == provider.Conflict: // "Git Repository is empty."
		return "", false, fault.Invalid("repo", "it has no commit yet, which another could stand on: give it a first "+
			"file at GitHub")
	case err == nil && in.From != "" && ref.GetObject().GetSHA() != "":
		return "", false, fault.Invalid("from", "the branch exists: omit this to add to it")
	case in.From == "" || err == nil || read(err).Proof != provider.Missing:
		return ref.GetObject().GetSHA(), false, err
	}
	ref, _, err = api.Git.GetRef(ctx, in.Owner, in.Repo, "heads/"+in.From)
	return ref.GetObject().GetSHA(), true, err
}

// entries returns the files as parts of a tree. An existing file keeps its mode.
func entries(files []FileChange, is map[string]*githubapi.TreeEntry) (out []*githubapi.TreeEntry) {
	for _, f := range files {
		mode := cmp.Or(is[f.Path].GetMode(), modeFile)
		e := &githubapi.TreeEntry{Path: new(f.Path), Mode: &mode, Type: new("blob")}
		if !f.Delete {
			e.Content = new(f.Content)
		}
		out = append(out, e)
	}
	return out
}

func wasBuilt(c tool.Call) (b built, ok bool) {
	err := json.Unmarshal([]byte(c.Handle), &b)
	return b, err == nil && b.SHA != "" && b.Parent != ""
}

// moveBranch moves the branch to the commit. It fails if the branch has a new commit in the meantime.
func (h *hub) moveBranch(ctx context.Context, c tool.Call, in NewCommit) (Committed, error) {
	b, ok := wasBuilt(c)
	if !ok {
		return Committed{}, noRecord()
	}
	api, err := h.client(ctx, c)
	if err != nil {
		return Committed{}, err
	}
	var ref *githubapi.Reference
	call := "git.updateRef"
	if b.New {
		call = "git.createRef"
		ref, _, err = api.Git.CreateRef(ctx, in.Owner, in.Repo,
			githubapi.CreateRef{Ref: "refs/heads/" + in.Branch, SHA: b.SHA})
	} else {
		ref, _, err = api.Git.UpdateRef(ctx, in.Owner, in.Repo, "heads/"+in.Branch,
			githubapi.UpdateRef{SHA: b.SHA, Force: new(false)})
	}
	switch {
	case err != nil && read(err).Status == http.StatusUnprocessableEntity:
		return refusedMove(ctx, api, in, b, failed(err, call, "the commit"))
	case err != nil:
		return Committed{}, failed(err, call, "the commit")
	case ref.GetObject().GetSHA() != b.SHA:
		return Committed{}, unread("the commit")
	}
	return Committed{SHA: b.SHA, Branch: in.Branch, URL: b.URL}, nil
}

// refusedMove returns the outcome if GitHub refuses to move the branch to the commit. Either an earlier attempt has
// moved it, or the branch has a new commit, or someone else has created the branch.
func refusedMove(ctx context.Context, api *githubapi.Client, in NewCommit, b built, refused error) (Committed, error) {
	log, err := newest(ctx, api, in)
	switch {
	case err != nil:
		return Committed{}, tool.Ambiguous(refused)
	case has(log, b.SHA):
		return Committed{SHA: b.SHA, Branch: in.Branch, URL: b.URL}, nil
	}
	return Committed{}, refused
}

// newest returns the newest commits of the branch, its head first.
func newest(ctx context.Context, api *githubapi.Client, in NewCommit) ([]*githubapi.RepositoryCommit, error) {
	log, _, err := api.Repositories.ListCommits(ctx, in.Owner, in.Repo, &githubapi.CommitsListOptions{SHA: in.Branch,
		ListOptions: githubapi.ListOptions{PerPage: 100}})
	return log, err
}

func has(log []*githubapi.RepositoryCommit, sha string) bool {
	return slices.ContainsFunc(log, func(c *githubapi.RepositoryCommit) bool { return c.GetSHA() == sha })
}

// reconcileCommit looks for the commit on the branch, which may have newer commits by now. The commit was never there
// only if the branch still ends with the commit's parent. If the branch ends elsewhere, or a new branch is missing,
// someone may have removed the commit.
func (h *hub) reconcileCommit(ctx context.Context, c tool.Call, in NewCommit) (tool.Verdict, Committed, string, error) {
	b, ok := wasBuilt(c)
	if !ok {
		return tool.NotDone, Committed{}, "", nil
	}
	const thing = "the commit"
	api, err := h.client(ctx, c)
	if err != nil {
		verdict, reason, err := cannotAsk(err, "client", thing)
		return verdict, Committed{}, reason, err
	}
	log, err := newest(ctx, api, in)
	switch {
	case err != nil && b.New && read(err).Proof == provider.Missing:
		return tool.Unknown, Committed{}, "The branch is not there, and it is not clear whether it was made and is " +
			"deleted by now. Please look at GitHub.", nil
	case err != nil:
		verdict, reason, err := cannotAsk(err, "repos.listCommits", thing)
		return verdict, Committed{}, reason, err
	case has(log, b.SHA):
		return tool.Done, Committed{SHA: b.SHA, Branch: in.Branch, URL: b.URL}, "", nil
	case !b.New && len(log) > 0 && log[0].GetSHA() == b.Parent:
		return tool.NotDone, Committed{}, "", nil
	}
	return tool.Unknown, Committed{}, "The branch is not what it was, and it is not clear whether it had the commit. " +
		"Please look at GitHub.", nil
}
