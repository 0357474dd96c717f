package command

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"path"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store/output"
	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
)

// DownloadArgs are the arguments of download_file.
type DownloadArgs struct {
	Path      string        `json:"path" jsonschema:"The file on the host: absolute, or in the terminal's directory."`
	Reasoning string        `json:"reasoning" jsonschema:"Why, in one or two sentences for the user."`
	Base      *DownloadBase `json:"base,omitempty"`
}

// DownloadBase describes the file on the host. This program sets it when the call is proposed.
type DownloadBase struct {
	Real   string `json:"real"` // the path without links
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// Downloaded is the result of download_file. The file itself is the call's stored output.
type Downloaded struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

func (r *runner) downloadTool() *tool.Tool {
	return tool.Define(tool.Def[DownloadArgs, Downloaded]{
		Name: Download,
		Description: "Takes a file of at most 1 MiB from the host of the user's terminal, so that the user can save " +
			"it from this conversation. You get its size and hash, not its content.",
		SideEffect: true,
		Class:      tool.ClassOpaque, // for a file that can no longer be judged
		Untrusted:  true,
		Echoes:     true,

		KeepsOutput: true,
		Refine: func(s *jsonschema.Schema) {
			delete(s.Properties, "base")
			text(s, "path", maxPath)
			text(s, "reasoning", maxReasoning)
		},
		Normalize: func(a DownloadArgs) (DownloadArgs, error) { return a, checkTransfer(a.Path, a.Reasoning) },
		Complete:  r.completeDownload,
		Bare: func(a DownloadArgs) DownloadArgs {
			a.Base = nil
			return a
		},
		Revise: func(before, edited DownloadArgs) DownloadArgs {
			if before.Path == edited.Path {
				edited.Base = before.Base
			}
			return edited
		},
		Rule:    r.downloadRule,
		Preview: previewDownload,
		Summary: func(DownloadArgs) string { return "Downloaded a file from a host." },
		Heading: func(a DownloadArgs) string { return "File: " + path.Base(a.Path) },
		Step:    downloadStep,
		Place:   r.place,
		Reads:   terminal.Reads,
		Execute: r.download,
		Reconcile: func(_ context.Context, c tool.Call, _ DownloadArgs) (tool.Verdict, Downloaded, string, error) {
			if c.Over {
				return tool.Never, Downloaded{}, "", nil
			}
			return tool.NotDone, Downloaded{}, "", nil // it only reads
		},
	})
}

func (r *runner) completeDownload(ctx context.Context, c tool.Call, a DownloadArgs) (DownloadArgs, error) {
	m, err := r.open(ctx, c.Scope())
	if err != nil {
		return a, err
	}
	defer m.release()
	a.Base, err = present(ctx, m, a.Path)
	return a, err
}

// present describes the file at a path of the host.
func present(ctx context.Context, m *machine, file string) (*DownloadBase, error) {
	now, err := look(ctx, m, file)
	switch {
	case err != nil:
		return nil, err
	case now.Kind != supervisor.FileRegular:
		return nil, fault.New(fault.Tool, CodeNoFile, "The host has no file at this path.")
	case now.Size > output.Max:
		return nil, fault.New(fault.Tool, CodeTooLarge, "The file has %s; the limit is %s.", bytesOf(now.Size),
			bytesOf(output.Max))
	case !m.Facts.Proc:
		return nil, fault.New(fault.Tool, CodeUnverified, "The host has no /proc, so it cannot tell where a path "+
			"leads.")
	}
	return &DownloadBase{now.Real, now.Size, now.SHA256}, nil
}

// downloadRule requires approval for a file, unless the user has allowed reading it.
func (r *runner) downloadRule(ctx context.Context, c tool.Call, a DownloadArgs) (tool.CallPolicy, error) {
	at, err := r.site(ctx, c.Scope())
	if err != nil {
		return tool.CallPolicy{}, err
	}
	p := tool.CallPolicy{Class: tool.ClassRead, Mode: tool.RuleAsk, ID: RuleAsks,
		Facts:  tool.Facts{"host": at.Host.ID, "class": string(tool.ClassRead)},
		Reason: "A file waits for your yes unless it is in a folder that you let be read on this host."}
	if at.Host.Unasked() == terminal.AutoRunReadOnly && a.Base != nil && within(at.Host.ReadPaths, a.Base.Real) {
		p.Mode, p.ID = tool.RuleAllow, RuleReadOnly
		p.Reason = "It only reads a file of a folder that you let be read on this host."
	}
	return p, nil
}

func previewDownload(a DownloadArgs) tool.Preview {
	p := tool.Preview{Title: "Download a file from a host"}
	p.AddLine("Path", a.Path)
	if a.Base != nil {
		p.AddLine("Which is", a.Base.Real)
		describe(&p, a.Base.Size, a.Base.SHA256)
	}
	p.AddText("The assistant says", a.Reasoning)
	return p
}

func downloadStep(a DownloadArgs, out *Downloaded) tool.Step {
	s := tool.Step{Kind: tool.StepFile, Reasoning: a.Reasoning,
		File: &tool.File{Name: path.Base(a.Path), Path: a.Path}}
	if out != nil {
		s.File = &tool.File{Name: path.Base(a.Path), Path: out.Path, Size: out.Size, SHA256: out.SHA256, Kept: true}
	}
	return s
}

// download reads the bytes that the card showed. If the file has grown, it reads only those.
func (r *runner) download(ctx context.Context, c tool.Call, a DownloadArgs) (Downloaded, error) {
	m, err := r.open(ctx, c.Scope())
	if err != nil {
		return Downloaded{}, err
	}
	defer m.release()
	if a.Base == nil { // the user has edited the path
		if a.Base, err = present(ctx, m, a.Path); err != nil {
			return Downloaded{}, err
		}
	}
	folders := []string{a.Base.Real}
	if !c.Approved {
		folders = m.at.Host.ReadPaths
	}
	var content bytes.Buffer
	if err := m.Fetch(ctx, a.Base.Real, folders, a.Base.Size, &content); err != nil {
		if nothing := notTransferred(err); nothing != nil {
			return Downloaded{}, nothing
		}
		return Downloaded{}, tool.Transient(err)
	}
	if sum := sha256.Sum256(content.Bytes()); hex.EncodeToString(sum[:]) != a.Base.SHA256 {
		return Downloaded{}, errFileChanged()
	}
	_, _ = c.Output.Write(content.Bytes()) // it never fails
	return Downloaded{a.Base.Real, a.Base.Size, a.Base.SHA256}, nil
}
