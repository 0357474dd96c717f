package docker

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/telemetry/obs"
	"github.com/countersign-run/countersign/shared/tools/internal/patch"
)

// EditArgs are the arguments of docker.editFile.
type EditArgs struct {
	ContainerID string              `json:"containerId" jsonschema:"The id that createContainer has returned."`
	Path        string              `json:"path" jsonschema:"The file, absolute or in /work."`
	SHA256      string              `json:"sha256,omitempty" jsonschema:"The sha256 that readFileInContainer returned for the file; left out: the file is new."`
	Edits       []patch.Replacement `json:"edits,omitempty" jsonschema:"Exact replacements in the file."`
	Content     string              `json:"content,omitempty" jsonschema:"In place of edits: the whole of the file, as text."`
	Base        *EditBase           `json:"base,omitempty"`
}

// EditBase is how the file in the container changes. This program sets it when the call is proposed.
type EditBase struct {
	Result string     `json:"result"` // SHA-256 of the text that is written
	Diff   patch.Diff `json:"diff"`   // without secrets
}

// Edited is the result of docker.editFile.
type Edited struct {
	SHA256 string `json:"sha256"` // of the whole file, for the next edit or a commit
	Size   int    `json:"size"`
}

// maxContent limits the texts of one edit, in bytes.
const maxContent = 256 << 10

func (t *tools) editFile() *tool.Tool {
	return tool.Define(tool.Def[EditArgs, Edited]{
		Name: EditFile,
		Description: "Changes a text file of at most 1 MiB in a container of this task by exact replacements, or " +
			"writes it as a whole. The user sees the change.",
		SideEffect: true, Contained: t.Network == "",
		Refine: func(s *jsonschema.Schema) {
			delete(s.Properties, "base")
			s.Properties["containerId"].Pattern, s.Properties["sha256"].Pattern = idPattern, idPattern
			s.Properties["path"].MinLength, s.Properties["path"].MaxLength = jsonschema.Ptr(1), jsonschema.Ptr(maxPath)
		},
		Normalize: normalEdit,
		Complete:  t.completeEdit,
		Bare:      bareEdit,
		Revise:    reviseEdit,
		Changes:   changesOfEdit,
		Replaces: func(a EditArgs) []tool.Text {
			if len(a.Edits) > 0 {
				return nil
			}
			return []tool.Text{{Name: a.Path}}
		},
		Pinned:  func(EditArgs) any { return struct{}{} }, // nothing to pin: it acts in the run's own containers
		Preview: previewEdit,
		Summary: func(a EditArgs) string {
			return fmt.Sprintf("Changed a file in the container %.12s.", a.ContainerID)
		},
		Prepare: t.prepareEdit, Execute: t.edit, Reconcile: t.settleEdit,
	})
}

func normalEdit(a EditArgs) (EditArgs, error) {
	var err error
	if a.Path, err = inWork(a.Path); err != nil {
		return a, err
	}
	size, err := patch.Check(a.Edits, func(i int, name string) string {
		return strings.TrimSuffix("edits/"+strconv.Itoa(i)+"/"+name, "/")
	})
	switch {
	case err != nil:
		return a, err
	case len(a.Edits) > 0 && a.Content != "":
		return a, fault.Invalid("edits", "a file has edits or content, not both")
	case len(a.Edits) > 0 && a.SHA256 == "":
		return a, fault.Invalid("sha256", "the sha256 that %s returned is required", ReadFile)
	case strings.ContainsRune(a.Content, 0):
		return a, fault.Invalid("content", "a text without NUL is required")
	case size+len(a.Content) > maxContent:
		return a, fault.Invalid("content", "%d bytes; the limit is %d", size+len(a.Content), maxContent)
	}
	return a, nil
}

func bareEdit(a EditArgs) EditArgs {
	a.Base = nil
	return a
}

// reviseEdit keeps the comparison if the user left the text unchanged.
func reviseEdit(before, edited EditArgs) EditArgs {
	if before.ContainerID == edited.ContainerID && before.Path == edited.Path && before.SHA256 == edited.SHA256 &&
		before.Content == edited.Content && slices.Equal(before.Edits, edited.Edits) {
		edited.Base = before.Base
	}
	return edited
}

func changesOfEdit(a EditArgs) (EditArgs, []tool.Change) {
	var d patch.Diff
	if a.Base != nil {
		d = a.Base.Diff
	}
	return EditArgs{ContainerID: a.ContainerID, Path: a.Path, SHA256: a.SHA256}, patch.Changes(d, a.Edits, a.Content)
}

func previewEdit(a EditArgs) tool.Preview {
	p := tool.Preview{Title: "Change a file in a container"}
	p.AddLine("File", a.Path)
	p.AddLine("Container", a.ContainerID)
	if a.SHA256 != "" {
		p.AddField("Only if its SHA-256 is", a.SHA256)
	}
	switch {
	case a.Base != nil && a.Base.Diff.Text != "":
		p.AddDiff(fmt.Sprintf("Change, +%d −%d", a.Base.Diff.Added, a.Base.Diff.Removed), a.Base.Diff.Text, false)
	case len(a.Edits) == 0:
		p.AddText("The whole file", a.Content)
	}
	if a.Base == nil || a.Base.Diff.Text == "" {
		for i, e := range a.Edits {
			p.AddText(fmt.Sprintf("Replace, %d", i+1), e.Old)
			p.AddText(fmt.Sprintf("With, %d", i+1), e.New)
		}
	}
	return p
}

// completeEdit compares the file in the container with the text that the call writes.
func (t *tools) completeEdit(ctx context.Context, c tool.Call, a EditArgs) (EditArgs, error) {
	was, is, err := t.edited(ctx, c, a)
	if err != nil {
		return a, err
	}
	d, err := patch.Between(was, is)
	d.Text = obs.RemoveSecrets(d.Text)
	a.Base = &EditBase{Result: patch.Sum(is), Diff: d}
	return a, err
}

// edited returns the text in the container, and the text that the call writes.
func (t *tools) edited(ctx context.Context, c tool.Call, a EditArgs) (was, is string, err error) {
	was, there, err := t.text(ctx, c, a.ContainerID, a.Path)
	if err == nil {
		is, err = a.apply(was, there)
	}
	return was, is, err
}

// apply returns the text that the call writes over a file. It returns an error if the file is not the approved one.
func (a EditArgs) apply(was string, there bool) (is string, err error) {
	if there != (a.SHA256 != "") || there && patch.Sum(was) != a.SHA256 {
		return "", stale()
	}
	if is = a.Content; len(a.Edits) > 0 {
		is, err = patch.Apply(was, a.Edits)
	}
	switch {
	case err != nil:
		return "", err
	case len(is) > maxFile:
		return "", fault.Invalid("edits", "the file would have %d bytes; the limit is %d", len(is), maxFile)
	case a.Base != nil && a.Base.Result != patch.Sum(is):
		return "", fault.New(fault.Policy, fault.CodeIntegrity, "The text is not the one that was approved. "+
			"Nothing was changed.")
	}
	return is, nil
}

// text returns the file at a path, and whether it exists.
func (t *tools) text(ctx context.Context, c tool.Call, id, path string) (text string, there bool, err error) {
	tree, err := t.packed(ctx, c, id, path)
	if err != nil || len(tree.Files) == 0 {
		return "", false, err
	}
	return tree.Files[0].Content, true, nil
}

// prepareEdit returns the SHA-256 of the text to write. It first checks that the container has the approved file.
func (t *tools) prepareEdit(ctx context.Context, c tool.Call, a EditArgs) (string, error) {
	_, is, err := t.edited(ctx, c, a)
	return patch.Sum(is), err
}

// write writes its input to $1, if that is $2 bytes and the file's SHA-256 is still $3 (empty: there is no file). It
// keeps the permissions of a file that exists. A process that was paused before this may come too late.
const write = `command -v sha256sum >/dev/null || exit 127
f=$(readlink -f "$1") || f=$1
t=$f.countersign.$$
trap 'rm -f "$t"' EXIT
mkdir -p "${f%/*}" && { [ ! -e "$f" ] || cp -p "$f" "$t"; } && cat >"$t" && [ "$(wc -c <"$t")" -eq "$2" ] || exit 1
s=
[ ! -e "$f" ] || s=$(sha256sum <"$f")
[ "${s%% *}" = "$3" ] || exit ` + exitStale + `
mv -f "$t" "$f"`

// exitStale is the exit code of write if the file is not the approved one.
const exitStale = "3"

// edit writes the text, unless an earlier attempt has written it.
func (t *tools) edit(ctx context.Context, c tool.Call, a EditArgs) (Edited, error) {
	text, there, err := t.text(ctx, c, a.ContainerID, a.Path)
	if err != nil {
		return Edited{}, err
	}
	if out, done := editedAlready(c, text, there); done {
		return out, nil
	}
	is, err := a.apply(text, there)
	if err != nil {
		return Edited{}, err
	}
	e, err := t.engine()
	if err != nil {
		return Edited{}, err
	}
	exit, err := e.Feed(ctx, a.ContainerID, []string{"/bin/sh", "-c", write, "countersign", a.Path,
		strconv.Itoa(len(is)), a.SHA256}, []byte(is))
	switch {
	case err != nil:
		return Edited{}, tool.Ambiguous(err)
	case strconv.Itoa(exit) == exitStale:
		return t.late(ctx, c, a)
	case exit >= 126:
		return Edited{}, fault.New(fault.Tool, "no_program", "The container's image lacks a program that is needed "+
			"to edit files: sh, sha256sum, cp, mv, wc.")
	case exit != 0:
		return Edited{}, fault.New(fault.Tool, "write_failed", "The container could not write the file: its folder is "+
			"read-only, or the container has too little memory.")
	}
	return Edited{SHA256: c.Handle, Size: len(is)}, nil
}

// late returns the outcome of an edit whose file has changed after the first check. Either another process has made the
// same edit, or the file is not the approved one.
func (t *tools) late(ctx context.Context, c tool.Call, a EditArgs) (Edited, error) {
	text, there, err := t.text(ctx, c, a.ContainerID, a.Path)
	if err != nil {
		return Edited{}, err
	}
	if out, done := editedAlready(c, text, there); done {
		return out, nil
	}
	return Edited{}, stale()
}

// stale returns the error for a file that is not the approved one.
func stale() error {
	err := fault.New(fault.Policy, fault.CodeStaleView, "The file in the container is not the one with this "+
		"sha256. Nothing was changed: read it, and propose the change again.")
	err.Field = "sha256"
	return err
}

// editedAlready returns the result if the text is the one that the call writes.
func editedAlready(c tool.Call, text string, there bool) (out Edited, done bool) {
	if !there || patch.Sum(text) != c.Handle {
		return Edited{}, false
	}
	return Edited{SHA256: c.Handle, Size: len(text)}, true
}

// settleEdit reads the file only once, so an engine that fails later cannot change the verdict.
func (t *tools) settleEdit(ctx context.Context, c tool.Call, a EditArgs) (tool.Verdict, Edited, string, error) {
	text, there, err := t.text(ctx, c, a.ContainerID, a.Path)
	switch {
	case fault.Is(err, fault.Auth, fault.CodeNotFound) || fault.Is(err, fault.Tool, CodeNotReady):
		return tool.Unknown, Edited{}, "Its container is gone or does not run.", nil
	case err != nil:
		return "", Edited{}, "", err
	}
	if out, done := editedAlready(c, text, there); done {
		return tool.Done, out, "", nil
	}
	if _, err := a.apply(text, there); err != nil {
		return tool.Unknown, Edited{}, "The file is neither as it was nor as it was to be.", nil
	}
	return tool.NotDone, Edited{}, "", nil
}
