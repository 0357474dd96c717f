package command

import (
	"context"
	"errors"
	"path"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store/attachment"
	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
	"github.com/countersign-run/countersign/shared/tools/given"
)

// UploadArgs are the arguments of upload_file.
type UploadArgs struct {
	File      string      `json:"file" jsonschema:"The name of a file that the user attached in this conversation."`
	Path      string      `json:"path" jsonschema:"The path that the file gets on the host, with its name: absolute, or in the terminal's directory."`
	Overwrite bool        `json:"overwrite,omitempty" jsonschema:"Whether to replace a file that is there."`
	Reasoning string      `json:"reasoning" jsonschema:"Why, in one or two sentences for the user."`
	Base      *UploadBase `json:"base,omitempty"`
}

// UploadBase describes the file to copy and the file that it replaces. This program sets it when the call is proposed.
type UploadBase struct {
	File   attachment.Facts `json:"file"`
	Stored string           `json:"stored"`           // where the file is stored, as a URI
	Target string           `json:"target,omitempty"` // the path without links; empty: the user has edited the path
	Was    *WasThere        `json:"was,omitempty"`    // the file that is replaced, if any
}

// WasThere is a file on a host.
type WasThere struct {
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Uploaded is the result of upload_file.
type Uploaded struct {
	Path   string `json:"path"`
	Size   int    `json:"size"`
	SHA256 string `json:"sha256"`
}

func (r *runner) uploadTool() *tool.Tool {
	return tool.Define(tool.Def[UploadArgs, Uploaded]{
		Name: Upload,
		Description: "Puts a file that the user attached in this conversation on the host of the user's terminal, " +
			"byte for byte. It waits for the user's yes. Only its owner can read a new file.",
		SideEffect: true,
		Refine: func(s *jsonschema.Schema) {
			delete(s.Properties, "base")
			text(s, "file", maxPath)
			text(s, "path", maxPath)
			text(s, "reasoning", maxReasoning)
		},
		Normalize: func(a UploadArgs) (UploadArgs, error) { return a, checkTransfer(a.Path, a.Reasoning) },
		Complete:  r.completeUpload,
		Bare: func(a UploadArgs) UploadArgs {
			a.Base = nil
			return a
		},
		Revise:    reviseUpload,
		Rule:      r.uploadRule,
		Preview:   previewUpload,
		Summary:   func(a UploadArgs) string { return "Uploaded a file to a host." },
		Heading:   func(a UploadArgs) string { return "File: " + a.File },
		Step:      uploadStep,
		Place:     r.place,
		Reads:     terminal.Reads,
		Prepare:   r.prepareUpload,
		Execute:   r.upload,
		Reconcile: r.settleUpload,
	})
}

// completeUpload finds the file in the conversation, and the file at the path on the host.
func (r *runner) completeUpload(ctx context.Context, c tool.Call, a UploadArgs) (UploadArgs, error) {
	file, stored, err := r.given().Find(ctx, c, a.File)
	if err != nil {
		return a, err
	}
	a.Base = &UploadBase{File: file, Stored: stored}
	m, err := r.open(ctx, c.Scope())
	if err != nil {
		return a, err
	}
	defer m.release()
	now, err := look(ctx, m, a.Path)
	if err != nil {
		return a, err
	}
	a.Base.Target = now.Real
	if now.Kind == supervisor.FileRegular {
		a.Base.Was = &WasThere{now.Size, now.SHA256}
		if !a.Overwrite {
			return a, errExists(now)
		}
	}
	return a, nil
}

func errExists(now supervisor.File) error {
	err := fault.New(fault.Tool, CodeExists, "There is a file of %s at this path. Use another path, or set overwrite "+
		"if the user wants it replaced.", bytesOf(now.Size))
	err.Field = "path"
	return err
}

// reviseUpload keeps the facts about the file to copy. It keeps those about the host only if the user left the path
// unchanged, because a file that the card has not shown must not be replaced.
func reviseUpload(before, edited UploadArgs) UploadArgs {
	switch {
	case before.Base == nil || before.File != edited.File:
	case before.Path == edited.Path && before.Overwrite == edited.Overwrite:
		edited.Base = before.Base
	default:
		edited.Base = &UploadBase{File: before.Base.File, Stored: before.Base.Stored}
	}
	return edited
}

func (r *runner) uploadRule(ctx context.Context, c tool.Call, a UploadArgs) (tool.CallPolicy, error) {
	at, err := r.site(ctx, c.Scope())
	if err != nil {
		return tool.CallPolicy{}, err
	}
	p := tool.CallPolicy{Class: tool.ClassChange, Mode: tool.RuleAsk, ID: RuleAsks,
		Reason: "A file that is put on a host waits for your yes."}
	if a.Base != nil && a.Base.Was != nil {
		p.Class, p.Confirm = tool.ClassDestructive, at.Host.Name
	}
	if len(r.denied) > 0 {
		p.Mode, p.ID = tool.RuleDeny, RuleDenied
		p.Reason = "The operator of this service has forbidden some programs, and a file could contain one."
	}
	p.Facts = tool.Facts{"host": at.Host.ID, "class": string(p.Class)}
	return p, nil
}

func previewUpload(a UploadArgs) tool.Preview {
	p := tool.Preview{Title: "Upload a file to a host"}
	p.AddLine("File", a.File)
	if a.Base != nil {
		p.AddField("Type", a.Base.File.Type)
		describe(&p, int64(a.Base.File.Size), a.Base.File.SHA256)
	}
	p.AddLine("Path", a.Path)
	switch {
	case a.Base == nil || a.Base.Target == "":
		p.AddField("There now", "Nothing, or it is not done")
	case a.Base.Was == nil:
		p.AddLine("Which is", a.Base.Target)
		p.AddField("There now", "Nothing")
	default:
		p.AddLine("Which is", a.Base.Target)
		p.AddField("Replaces", bytesOf(a.Base.Was.Size)+", SHA-256 "+a.Base.Was.SHA256)
	}
	if a.Overwrite {
		p.AddField("Overwrite", "Only the file that is shown here")
	}
	p.AddText("The assistant says", a.Reasoning)
	return p
}

func uploadStep(a UploadArgs, out *Uploaded) tool.Step {
	s := tool.Step{Kind: tool.StepFile, Reasoning: a.Reasoning, File: &tool.File{Name: a.File, Path: a.Path}}
	if out != nil {
		s.File.Path, s.File.Size, s.File.SHA256 = out.Path, int64(out.Size), out.SHA256
	}
	return s
}

// target returns the file that the host now has at the call's path, and whether it is already the call's own. It
// returns an error if it is neither that file nor the one on the card.
func target(ctx context.Context, m *machine, a UploadArgs) (now supervisor.File, done bool, err error) {
	if a.Base == nil {
		return now, false, fault.New(fault.Policy, fault.CodeStaleView, "The file is not the one that was shown. "+
			"Nothing was changed: propose it again.")
	}
	if now, err = look(ctx, m, a.Path); err != nil {
		return now, false, err
	}
	there := now.Kind == supervisor.FileRegular
	switch b := a.Base; {
	case b.Target != "" && now.Real != b.Target:
		return now, false, errFileChanged()
	case there && now.SHA256 == b.File.SHA256:
		return now, true, nil
	case there && b.Target == "":
		return now, false, errExists(now)
	case there != (b.Was != nil) || there && now.SHA256 != b.Was.SHA256:
		return now, false, errFileChanged()
	}
	return now, false, nil
}

// prepareUpload checks that the host still has the file on the card at the path.
func (r *runner) prepareUpload(ctx context.Context, c tool.Call, a UploadArgs) (string, error) {
	m, err := r.open(ctx, c.Scope())
	if err != nil {
		return "", err
	}
	defer m.release()
	if _, _, err := target(ctx, m, a); err != nil {
		return "", err
	}
	return a.Base.File.SHA256, nil
}

// upload writes the file, unless an earlier attempt has written it.
func (r *runner) upload(ctx context.Context, c tool.Call, a UploadArgs) (Uploaded, error) {
	m, err := r.open(ctx, c.Scope())
	if err != nil {
		return Uploaded{}, err
	}
	defer m.release()
	now, done, err := target(ctx, m, a)
	if err != nil || done {
		return a.uploaded(now), err
	}
	content, err := r.given().Read(ctx, c.UID, a.Base.Stored, a.Base.File.SHA256)
	if err != nil {
		return Uploaded{}, err
	}
	put := supervisor.Put{ID: c.ActionID, Path: now.Real, Content: content, SHA256: a.Base.File.SHA256}
	if now.Kind == supervisor.FileRegular {
		put.Was = now.SHA256
	}
	err = m.Put(ctx, put)
	if errors.Is(err, supervisor.ErrChanged) { // perhaps another process has just written it
		if now, done, err := target(ctx, m, a); err != nil || done {
			return a.uploaded(now), err
		}
		return Uploaded{}, errFileChanged()
	}
	if err != nil {
		if nothing := notTransferred(err); nothing != nil {
			return Uploaded{}, nothing
		}
		return Uploaded{}, tool.Ambiguous(err)
	}
	return a.uploaded(now), nil
}

func (a UploadArgs) uploaded(now supervisor.File) Uploaded {
	if a.Base == nil {
		return Uploaded{}
	}
	return Uploaded{Path: now.Real, Size: a.Base.File.Size, SHA256: a.Base.File.SHA256}
}

// given returns the files of the conversations.
func (r *runner) given() given.Files { return given.Files{Store: r.Store, Objects: r.Files} }

// settleUpload finds out whether the host has the file.
func (r *runner) settleUpload(ctx context.Context, c tool.Call, a UploadArgs) (tool.Verdict, Uploaded, string, error) {
	m, err := r.open(ctx, c.Scope())
	if err != nil {
		return "", Uploaded{}, "", err
	}
	defer m.release()
	now, done, err := target(ctx, m, a)
	switch {
	case done:
		return tool.Done, a.uploaded(now), "", nil
	case tool.IsTransient(err):
		return "", Uploaded{}, "", err
	case err != nil:
		return tool.Unknown, Uploaded{}, "The host has neither the file that was there nor the new one at " +
			path.Base(a.Path) + ".", nil
	}
	return tool.NotDone, Uploaded{}, "", nil
}
