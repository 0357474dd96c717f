package github

import (
	"context"
	"slices"
	"strings"

	githubapi "github.com/google/go-github/v92/github"

	"github.com/countersign-run/countersign/shared/base/fault"
)

// The modes of entries in a tree (gitformat-index: object type and permissions).
const (
	modeFile    = "100644"
	modeProgram = "100755"
	modeFolder  = "040000"
	modeLink    = "120000"
	modeModule  = "160000"
)

// entriesThere returns the tree's entries for those files that exist in it. A commit replaces only ordinary files. It
// refuses links, submodules and folders, because the card would not show that it replaces them. The result is nil if an
// answer from GitHub cannot be used.
func entriesThere(ctx context.Context, api *githubapi.Client, in NewCommit,
	root string) (map[string]*githubapi.TreeEntry, error) {
	w := walker{api: api, in: in, seen: map[string][]*githubapi.TreeEntry{}}
	there := map[string]*githubapi.TreeEntry{}
	for _, f := range in.Files {
		e, err := w.entry(ctx, root, f.Path)
		if err != nil {
			return nil, err
		}
		if e != nil {
			there[f.Path] = e
		}
	}
	if w.odd {
		return nil, nil
	}
	return there, nil
}

// walker reads trees folder by folder, because a list of all files of a repository can be longer than any answer.
type walker struct {
	api  *githubapi.Client
	in   NewCommit
	seen map[string][]*githubapi.TreeEntry // by the SHA of their tree
	odd  bool                              // whether an answer could not be used
}

// entry returns the entry of the file, or nil if there is none.
func (w *walker) entry(ctx context.Context, tree, path string) (*githubapi.TreeEntry, error) {
	for rest := path; ; {
		all, err := w.list(ctx, tree)
		if err != nil {
			return nil, err
		}
		name, below, deeper := strings.Cut(rest, "/")
		i := slices.IndexFunc(all, func(e *githubapi.TreeEntry) bool { return e.GetPath() == name })
		if i < 0 {
			return nil, nil
		}
		if !deeper {
			return all[i], ordinary(all[i].GetMode(), path)
		}
		if all[i].GetMode() != modeFolder {
			return nil, fault.Invalid("files", "%s is inside something that is not a folder", path)
		}
		tree, rest = all[i].GetSHA(), below
	}
}

func (w *walker) list(ctx context.Context, sha string) ([]*githubapi.TreeEntry, error) {
	if all, ok := w.seen[sha]; ok {
		return all, nil
	}
	t, _, err := w.api.Git.GetTree(ctx, w.in.Owner, w.in.Repo, sha, false)
	if err != nil {
		return nil, err
	}
	if t.GetSHA() != sha {
		w.odd = true
		return nil, nil
	}
	if t.GetTruncated() {
		return nil, fault.New(fault.Tool, "provider_refused", "A folder has more files than GitHub lists, so that it "+
			"is not clear what the commit would replace, and nothing was changed.")
	}
	w.seen[sha] = t.Entries
	return t.Entries, nil
}

// ordinary refuses everything except ordinary files.
func ordinary(mode, path string) error {
	switch mode {
	case modeFile, modeProgram:
		return nil
	case modeLink:
		return fault.Invalid("files", "%s is a symbolic link in the repository", path)
	case modeModule:
		return fault.Invalid("files", "%s is a submodule in the repository", path)
	case modeFolder:
		return fault.Invalid("files", "%s is a folder in the repository", path)
	}
	return fault.Invalid("files", "%s is not an ordinary file in the repository", path)
}
