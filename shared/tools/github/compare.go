package github

import (
	"context"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	githubapi "github.com/google/go-github/v92/github"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/tools/internal/patch"
)

// maxResult limits the texts of all files of a commit, in bytes. The arguments have a smaller limit.
const maxResult = 4 << 20

// completeCommit adds the differences between the commit and the branch. It refuses a commit that could not be created.
// If GitHub or the container does not answer, it refuses edits, which mean nothing without their file. Whole files stay
// as they are, and the card shows all of them.
func (h *hub) completeCommit(ctx context.Context, c tool.Call, in NewCommit) (NewCommit, error) {
	done, err := h.compare(ctx, c, in)
	var ours *fault.Error
	switch {
	case errors.As(err, &ours) && (ours.Class == fault.Validation || ours.Class == fault.Policy):
		return in, err
	case err == nil && done != nil:
		in.Files = done
		return in, nil
	case !slices.ContainsFunc(in.Files, func(f FileChange) bool { return len(f.Edits) > 0 }):
		return in, nil
	case err == nil:
		return in, odd()
	}
	return in, unlooked(err, "git.getTree")
}

// compare returns the files with their bases, or nil if an answer from GitHub cannot be used.
func (h *hub) compare(ctx context.Context, c tool.Call, in NewCommit) ([]FileChange, error) {
	api, err := h.client(ctx, c)
	if err != nil {
		return nil, err
	}
	files, err := h.fill(ctx, c, in)
	if err != nil {
		return nil, err
	}
	tree, _, err := stand(ctx, api, in)
	if err != nil || tree == nil {
		return nil, err
	}
	there, err := entriesThere(ctx, api, in, tree.root)
	if err != nil || there == nil {
		return nil, err
	}
	out, texts := bareCommit(in).Files, versions{was: map[string]string{}, is: map[string]string{}}
	for i, f := range files {
		if out[i].Base, err = texts.base(ctx, api, in, f, there[f.Path]); err != nil {
			return nil, err
		}
	}
	return out, texts.moves(out)
}

// versions holds the contents of a commit's files by path: before the commit and after it.
type versions struct{ was, is map[string]string }

// base returns the state of the file on the branch. It fills in the file's content unless the file is edited.
func (v versions) base(ctx context.Context, api *githubapi.Client, in NewCommit, f FileChange,
	there *githubapi.TreeEntry) (*Base, error) {
	if err := f.stand(there); err != nil {
		return nil, err
	}
	b := &Base{SHA: there.GetSHA()}
	was, err := earlier(ctx, api, in, f, there, b)
	if err != nil {
		return nil, err
	}
	is := f.Content
	if len(f.Edits) > 0 {
		if is, err = patch.Apply(was, f.Edits); err != nil {
			return nil, inFile(f, err)
		}
	}
	if there != nil && !b.Binary && !b.Unread {
		v.was[f.Path] = was
	}
	if !f.Delete {
		v.is[f.Path], b.Result = is, patch.Sum(is)
		b.Note = patch.Notable(f.Path, is, there.GetMode() == modeProgram)
	}
	b.Folded = patch.Generated(f.Path, is)
	if b.Binary || b.Unread {
		return b, nil
	}
	b.Diff, err = patch.Between(was, is)
	if f.Delete || there == nil && f.SHA256 == "" {
		b.Diff.Text = "" // the card shows the content itself, or that the file is deleted
	}
	return b, err
}

// earlier returns the text on the branch. If the text cannot be compared, it stores the reason in b.
func earlier(ctx context.Context, api *githubapi.Client, in NewCommit, f FileChange, there *githubapi.TreeEntry,
	b *Base) (string, error) {
	if there == nil {
		return "", nil
	}
	if b.Unread = there.GetSize() > patch.MaxFile; b.Unread {
		if len(f.Edits) > 0 {
			return "", fault.Invalid("files", "%s has %d bytes; the limit of a file with edits is %d", f.Path,
				there.GetSize(), patch.MaxFile)
		}
		return "", nil
	}
	content, err := blobOf(ctx, api, in.Owner, in.Repo, there)
	if err != nil {
		return "", err
	}
	text := string(content)
	if b.Binary = !utf8.ValidString(text) || strings.ContainsRune(text, 0); b.Binary && len(f.Edits) > 0 {
		return "", fault.Invalid("files", "%s is not text", f.Path)
	}
	return text, nil
}

// inFile adds the file to an error about its edits.
func inFile(f FileChange, err error) error {
	found := *fault.As(err)
	found.Message = f.Path + ": " + found.Message
	found.Field = "files"
	return &found
}

// moves finds the new files that replace a deleted one: they keep at least half of its lines.
func (v versions) moves(files []FileChange) error {
	for _, gone := range files {
		was, known := v.was[gone.Path]
		if !gone.Delete || !known {
			continue
		}
		best := -1
		var closest patch.Diff
		for i, f := range files {
			if f.Delete || f.Base.SHA != "" || f.Base.Moved != "" {
				continue
			}
			d, err := patch.Between(was, v.is[f.Path])
			if err != nil {
				return err
			}
			near := 2*d.Removed <= strings.Count(was, "\n") && was != ""
			if near && (best < 0 || d.Removed+d.Added < closest.Removed+closest.Added) {
				best, closest = i, d
			}
		}
		if best >= 0 {
			files[best].Base.Moved, files[best].Base.Diff = gone.Path, closest
		}
	}
	return nil
}

// patched returns the files with the texts that the commit writes. It first checks that the branch has the approved
// bases.
func patched(ctx context.Context, api *githubapi.Client, in NewCommit,
	there map[string]*githubapi.TreeEntry) ([]FileChange, error) {
	files, size := bareCommit(in).Files, 0
	for i, f := range in.Files {
		if err := f.stand(there[f.Path]); err != nil {
			return nil, err
		}
		if len(f.Edits) > 0 {
			was, err := earlier(ctx, api, in, f, there[f.Path], &Base{})
			if err != nil {
				return nil, err
			}
			if files[i].Content, err = patch.Apply(was, f.Edits); err != nil {
				return nil, inFile(f, err)
			}
		}
		if !f.Delete {
			if err := f.result(files[i].Content); err != nil {
				return nil, err
			}
		}
		if size += len(files[i].Content); size > maxResult {
			return nil, fault.Invalid("files", "the limit of all files together is %d bytes", maxResult)
		}
	}
	return files, nil
}
