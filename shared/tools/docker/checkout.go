package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/tools/container"
)

// Checkout names the commit whose files a container starts with.
type Checkout struct {
	Owner  string `json:"owner" jsonschema:"The account that the repository belongs to."`
	Repo   string `json:"repo" jsonschema:"The repository's name."`
	Commit string `json:"commit" jsonschema:"The commit, in 40 digits, as github.listFiles says it."`
}

// Source reads the files of a commit with the account of the call's user. The container does not get that account.
type Source interface {
	Snapshot(ctx context.Context, c tool.Call, owner, repo, commit string) (container.Snapshot, error)
}

// CheckedOut describes the commit that was put into a container.
type CheckedOut struct {
	Commit  string `json:"commit"`
	Files   int    `json:"files"`
	LeftOut int    `json:"leftOut"` // submodules, links that lead out, and invalid names
}

// checkoutMark is a file in /work that contains a CheckedOut. It is written after all other files.
const checkoutMark = ".countersign-checkout"

func (t *tools) refineCheckout(o *jsonschema.Schema) {
	if t.Checkouts == nil {
		delete(o.Properties, "checkout")
		return
	}
	p := o.Properties["checkout"].Properties
	p["owner"].Pattern, p["repo"].Pattern, p["commit"].Pattern = ownerPattern, repoPattern, commitPattern
}

// The forms of the names on GitHub.
const (
	ownerPattern  = `^[A-Za-z0-9](-?[A-Za-z0-9]){0,38}$`
	repoPattern   = `^[A-Za-z0-9._-]{1,100}$`
	commitPattern = `^[0-9a-f]{40}$`
)

func (t *tools) checkCheckout(o *CreateOptions) error {
	switch {
	case o.Checkout == nil:
		return nil
	case t.Checkouts == nil:
		return fault.Invalid("options/checkout", "no repository can be checked out here")
	case strings.Trim(o.Checkout.Repo, ".") == "":
		return fault.Invalid("options/checkout/repo", "not a repository name")
	case len(o.Command) > 0:
		return fault.Invalid("options/command", "a container with a checkout waits for scripts, and has no command "+
			"of its own")
	}
	return nil
}

func previewCheckout(p *tool.Preview, at *Checkout) {
	if at == nil {
		return
	}
	p.AddField("Checkout", fmt.Sprintf("%s/%s at %s", at.Owner, at.Repo, at.Commit))
	p.AddField("Read by", "your GitHub account, outside the container")
}

// checkOut puts the files into a running container, unless that has been done.
func (t *tools) checkOut(ctx context.Context, e Engine, c tool.Call, id string, at Checkout) (*CheckedOut, error) {
	switch done, err := t.checkedOut(ctx, c, id); {
	case err != nil:
		return nil, t.without(ctx, e, id, err)
	case done != nil:
		return done, nil
	}
	files, err := t.Checkouts.Snapshot(ctx, c, at.Owner, at.Repo, at.Commit)
	if err != nil {
		return nil, t.without(ctx, e, id, err)
	}
	done := CheckedOut{at.Commit, len(files.Entries), files.LeftOut}
	mark, err := json.Marshal(done)
	if err != nil {
		return nil, err
	}
	archive, err := files.Archive(container.Entry{Path: checkoutMark, Content: mark})
	if err != nil {
		return nil, err
	}
	exit, err := e.Feed(ctx, id, []string{"tar", "-xf", "-", "-C", container.Work}, archive)
	switch {
	case err != nil:
		return nil, tool.Ambiguous(err)
	case exit != 0:
		return nil, t.without(ctx, e, id, fault.New(fault.Tool, "checkout_failed", "The repository could not be "+
			"unpacked in the container, which was removed: its image has no tar, or it has too little memory."))
	}
	return &done, nil
}

// without removes a container after a failed checkout, so that the call has no effect. The container is not in use
// yet.
func (t *tools) without(ctx context.Context, e Engine, id string, failed error) error {
	if err := e.Remove(ctx, id); err != nil && !errors.Is(err, container.ErrMissing) {
		return tool.Ambiguous(failed)
	}
	return failed
}

// checkedOut returns the commit in a container, or nil if the checkout is not complete.
func (t *tools) checkedOut(ctx context.Context, c tool.Call, id string) (*CheckedOut, error) {
	tree, err := t.archive(ctx, c, id, container.Bounds{Files: 1, File: maxPath, All: 2 * maxPath},
		"tar", "-cf", "-", "-C", container.Work, "--", checkoutMark)
	if err != nil || len(tree.Files) == 0 {
		return nil, err
	}
	var done CheckedOut
	if json.Unmarshal([]byte(tree.Files[0].Content), &done) != nil {
		return nil, nil
	}
	return &done, nil
}
