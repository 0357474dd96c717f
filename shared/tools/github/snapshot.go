package github

import (
	"context"
	"encoding/base64"
	"strings"

	githubapi "github.com/google/go-github/v92/github"
	"golang.org/x/sync/errgroup"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/tools/container"
	"github.com/countersign-run/countersign/shared/tools/internal/provider"
)

// Snapshots reads the files of commits for a container.
type Snapshots struct{ h *hub }

// NewSnapshots returns a reader of commits in the users' accounts.
func NewSnapshots(accounts Accounts, o Options) Snapshots { return Snapshots{newHub(accounts, o)} }

// CodeTooLarge is the error code for a repository that exceeds the limits of a snapshot.
const CodeTooLarge fault.Code = "repository_too_large"

const atOnce = 8 // concurrent requests for files

// Snapshot returns the files of a commit, object by object, as git stores them: no attribute of the repository
// (export-ignore, export-subst, a filter for large files) changes or drops one. It uses the account that the call's
// user has linked now. Errors: AuthError not_found if this account cannot see the commit; PolicyError
// repository_too_large if the commit exceeds the limits.
func (s Snapshots) Snapshot(ctx context.Context, c tool.Call, owner, repo, commit string) (container.Snapshot, error) {
	var err error
	if c.Place, err = s.h.accounts.Place(ctx, c.UID, nil); err != nil {
		return container.Snapshot{}, err
	}
	api, err := s.h.client(ctx, c)
	if err != nil {
		return container.Snapshot{}, err
	}
	files, err := snapshot(ctx, api, owner, repo, commit)
	switch {
	case err != nil && fault.As(err).Code == CodeTooLarge:
	case err != nil && read(err).Proof == provider.Missing:
		err = fault.New(fault.Auth, fault.CodeNotFound, "Your GitHub account cannot see this commit of %s/%s.", owner,
			repo)
	case err != nil:
		err = unlooked(err, "git.getTree")
	}
	return files, err
}

func snapshot(ctx context.Context, api *githubapi.Client, owner, repo, commit string) (out container.Snapshot,
	err error) {
	at, _, err := api.Git.GetCommit(ctx, owner, repo, commit)
	if err != nil {
		return out, err
	}
	tree, _, err := api.Git.GetTree(ctx, owner, repo, at.GetTree().GetSHA(), true)
	if err != nil {
		return out, err
	}
	kept, left := keep(tree.Entries)
	size := 0
	for _, e := range kept {
		size += e.GetSize()
	}
	if tree.GetTruncated() || len(kept) > container.SnapshotFiles || size > container.SnapshotBytes {
		return out, fault.New(fault.Policy, CodeTooLarge, "Only a repository of at most %d files and %d MiB can be "+
			"checked out.", container.SnapshotFiles, container.SnapshotBytes>>20)
	}
	entries := make([]container.Entry, len(kept))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	for i, e := range kept {
		group.Go(func() (err error) {
			entries[i], err = entry(ctx, api, owner, repo, e)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return out, err
	}
	out.LeftOut = left
	for _, e := range entries {
		if e.Inside() {
			out.Entries = append(out.Entries, e)
		} else {
			out.LeftOut++
		}
	}
	return out, nil
}

// keep returns the files and links of a tree, and the number of other entries except folders.
func keep(all []*githubapi.TreeEntry) (kept []*githubapi.TreeEntry, left int) {
	for _, e := range all {
		switch {
		case e.GetType() == "tree":
		case e.GetType() != "blob" || path("path", e.GetPath()) != nil:
			left++
		default:
			kept = append(kept, e)
		}
	}
	return kept, left
}

// entry reads a file or a link.
func entry(ctx context.Context, api *githubapi.Client, owner, repo string,
	e *githubapi.TreeEntry) (container.Entry, error) {
	out := container.Entry{Path: e.GetPath(), Program: e.GetMode() == modeProgram}
	content, err := blobOf(ctx, api, owner, repo, e)
	if err != nil {
		return out, err
	}
	if e.GetMode() == modeLink {
		out.Link = string(content)
		return out, nil
	}
	out.Content = content
	return out, nil
}

// sized provides the name and the size of a blob.
type sized interface {
	GetSHA() string
	GetSize() int
}

// blobOf reads a blob, which must have the size that GitHub has reported.
func blobOf(ctx context.Context, api *githubapi.Client, owner, repo string, of sized) ([]byte, error) {
	blob, _, err := api.Git.GetBlob(ctx, owner, repo, of.GetSHA())
	if err != nil {
		return nil, err
	}
	content := []byte(blob.GetContent())
	if blob.GetEncoding() == "base64" {
		if content, err = base64.StdEncoding.DecodeString(strings.ReplaceAll(blob.GetContent(), "\n", "")); err != nil {
			return nil, odd()
		}
	}
	if len(content) != of.GetSize() {
		return nil, odd()
	}
	return content, nil
}
