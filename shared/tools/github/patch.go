package github

import (
	"fmt"
	"slices"
	"strings"

	githubapi "github.com/google/go-github/v92/github"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/tools/internal/patch"
)

// Base is the state of a file on the branch, and how the commit differs from it. This program sets it when the commit
// is proposed. The commit is created only if the branch still has this state.
type Base struct {
	SHA    string     `json:"sha,omitempty"`    // of the blob; empty: the file is new
	Result string     `json:"result,omitempty"` // SHA-256 of the text that the commit writes
	Diff   patch.Diff `json:"diff,omitzero"`
	Moved  string     `json:"moved,omitempty"`  // path of the deleted file that this new file continues
	Binary bool       `json:"binary,omitempty"` // the file there is not a text
	Unread bool       `json:"unread,omitempty"` // the file there is too long to compare
	Folded bool       `json:"folded,omitempty"` // a program generates the file
	Note   string     `json:"note,omitempty"`   // what a careful reader should know about the file
}

// bareCommit returns the arguments without the additions of completeCommit.
func bareCommit(in NewCommit) NewCommit {
	in.Files = slices.Clone(in.Files)
	for i := range in.Files {
		in.Files[i].Base = nil
	}
	return in
}

// reviseCommit returns the user's edits with the comparisons of the files that the user left as they were.
func reviseCommit(before, edited NewCommit) NewCommit {
	if before.Owner != edited.Owner || before.Repo != edited.Repo || before.Branch != edited.Branch ||
		before.From != edited.From || before.ContainerID != edited.ContainerID {
		return edited
	}
	for i, f := range edited.Files {
		for _, was := range before.Files {
			if sameFile(was, f) {
				edited.Files[i].Base = was.Base
			}
		}
	}
	return edited
}

func sameFile(a, b FileChange) bool {
	edits := slices.Equal(a.Edits, b.Edits)
	a.Edits, b.Edits, a.Base, b.Base = nil, nil, nil, nil
	return edits && a.Path == b.Path && a.Content == b.Content && a.Delete == b.Delete && a.SHA256 == b.SHA256 &&
		a.Source == b.Source && a.SHA == b.SHA
}

// changesOf returns the texts that the commit changes, and the arguments without them.
func changesOf(in NewCommit) (NewCommit, []tool.Change) {
	rest := bareCommit(in)
	var changes []tool.Change
	for i, f := range in.Files {
		rest.Files[i].Content, rest.Files[i].Edits, rest.Files[i].SHA = "", nil, ""
		var d patch.Diff
		if f.Base != nil {
			d = f.Base.Diff
		}
		changes = append(changes, patch.Changes(d, f.Edits, f.Content)...)
	}
	return rest, changes
}

// normalEdits checks the replacements of a file. It returns their size in bytes.
func normalEdits(f FileChange, at func(name string) string) (size int, err error) {
	switch {
	case len(f.Edits) == 0 && f.SHA != "":
		return 0, fault.Invalid(at("edits"), "the replacements are required; otherwise omit sha")
	case len(f.Edits) == 0:
		return 0, nil
	case f.Content != "" || f.Delete || f.SHA256 != "" || f.Source != "":
		return 0, fault.Invalid(at("edits"), "set exactly one: edits, content, the sum in the container, or delete")
	case f.SHA == "":
		return 0, fault.Invalid(at("sha"), "the sha that "+ReadFile+" returned is required")
	}
	return patch.Check(f.Edits, func(i int, name string) string {
		return at(strings.TrimSuffix(fmt.Sprintf("edits/%d/%s", i, name), "/"))
	})
}

// stand checks that the branch still has the state for which the commit was approved or written. there is nil if the
// file is missing.
func (f FileChange) stand(there *githubapi.TreeEntry) error {
	want, known := f.SHA, f.SHA != ""
	if f.Base != nil {
		want, known = f.Base.SHA, true
	}
	if !known || there.GetSHA() == want {
		return nil
	}
	how := "is another version by now"
	switch {
	case there == nil:
		how = "is missing"
	case want == "":
		how = "exists by now"
	}
	err := fault.New(fault.Policy, fault.CodeStaleView, "On the branch, %s %s. Nothing was committed: read it, and "+
		"propose the commit again.", f.Path, how)
	err.Field = "files"
	return err
}

// result checks that the text is the approved one.
func (f FileChange) result(text string) error {
	if f.Base != nil && f.Base.Result != "" && f.Base.Result != patch.Sum(text) {
		return fault.New(fault.Policy, fault.CodeIntegrity, "The text for %s is not the one that was approved. "+
			"Nothing was committed.", f.Path)
	}
	return nil
}
