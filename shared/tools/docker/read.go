package docker

import (
	"context"
	"io"
	"path"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/telemetry/obs"
	"github.com/countersign-run/countersign/shared/tools/container"
	"github.com/countersign-run/countersign/shared/tools/internal/patch"
)

// ListArgs are the arguments of docker.listContainers.
type ListArgs struct {
	All bool `json:"all,omitempty" jsonschema:"Also those that do not run."`
}

// Listed are the containers of the run, newest first.
type Listed struct {
	Containers []Item `json:"containers"`
}

// Item is a container as the model sees it.
type Item struct {
	ID        string `json:"id"`
	Image     string `json:"image"`
	Group     string `json:"group,omitempty"`
	State     string `json:"state"`
	CreatedAt string `json:"createdAt"` // RFC 3339
}

func (t *tools) list() *tool.Tool {
	return tool.Define(tool.Def[ListArgs, Listed]{
		Name:        List,
		Description: "Lists the containers of this task.",
		Execute: func(ctx context.Context, c tool.Call, a ListArgs) (Listed, error) {
			e, err := t.engine()
			if err != nil {
				return Listed{}, err
			}
			has, err := e.List(ctx, owner(c), "", a.All)
			if err != nil {
				return Listed{}, nothingDone(err)
			}
			out := Listed{Containers: []Item{}}
			for _, one := range has {
				out.Containers = append(out.Containers, Item{ID: one.ID, Image: one.Image, Group: one.Group,
					State: string(one.State), CreatedAt: one.CreatedAt.UTC().Format(time.RFC3339)})
			}
			return out, nil
		},
	})
}

// FileArgs are the arguments of docker.readFileInContainer.
type FileArgs struct {
	ContainerID string `json:"containerId" jsonschema:"The id that createContainer has returned."`
	Path        string `json:"path" jsonschema:"The file, absolute or in /work."`
	Offset      int    `json:"offset,omitempty" jsonschema:"Lines to skip; left out: none."`
	Limit       int    `json:"limit,omitempty" jsonschema:"Lines to return at most; left out: as many as fit, some 48 KiB."`
	ByteOffset  int    `json:"byteOffset,omitempty" jsonschema:"In place of offset: the byte to begin at, within a long line."`
}

// FileText is the result of docker.readFileInContainer.
type FileText struct {
	Content   *string `json:"content,omitempty"`   // nil if the file does not exist
	Offset    int     `json:"offset,omitempty"`    // From, in results of earlier releases
	From      int     `json:"from,omitempty"`      // byte of the file at which the content begins
	Line      int     `json:"line,omitempty"`      // number of the content's first line
	Lines     int     `json:"lines,omitempty"`     // of the whole file
	Size      int     `json:"size"`                // bytes of the whole file
	Truncated bool    `json:"truncated,omitempty"` // there is more after the content
	Redacted  bool    `json:"redacted,omitempty"`  // secrets were removed from the content
	SHA256    string  `json:"sha256,omitempty"`    // of the whole file; a commit refers to the file by it

	NextOffset     int `json:"nextOffset,omitempty"`     // where the rest begins, if truncated
	NextByteOffset int `json:"nextByteOffset,omitempty"` // the same, within a long line
}

// Limits of reads, in bytes. They keep the result small enough that it is not cut again.
const (
	maxFile  = 1 << 20
	maxTold  = 48 << 10 // as JSON
	maxFiles = 500
	maxPath  = 1024
)

func (t *tools) readFile() *tool.Tool {
	return tool.Define(tool.Def[FileArgs, FileText]{
		Name: ReadFile,
		Description: "Reads a text file in a container of this task: some 48 KiB from the offset on, with the size " +
			"and the SHA-256 of the whole file. Where there is none, it has no content.",
		Untrusted: true,
		Echoes:    true,
		Shows:     func(a FileArgs, out FileText) []tool.Part { return []tool.Part{partOf(a, out)} },
		Refine: func(s *jsonschema.Schema) {
			s.Properties["containerId"].Pattern = idPattern
			s.Properties["path"].MinLength, s.Properties["path"].MaxLength = jsonschema.Ptr(1), jsonschema.Ptr(maxPath)
			for name, least := range map[string]float64{"offset": 0, "limit": 1, "byteOffset": 0} {
				s.Properties[name].Minimum, s.Properties[name].Maximum = &least, jsonschema.Ptr(float64(maxFile))
			}
		},
		Normalize: func(a FileArgs) (_ FileArgs, err error) {
			a.Path, err = inWork(a.Path)
			return a, err
		},
		Execute: func(ctx context.Context, c tool.Call, a FileArgs) (FileText, error) {
			tree, err := t.packed(ctx, c, a.ContainerID, a.Path)
			if err != nil || len(tree.Files) == 0 {
				return FileText{}, err
			}
			return pieceOf(tree.Files[0].Content, a)
		},
	})
}

// inWork returns the absolute form of a path, which is in /work unless it is absolute.
func inWork(file string) (string, error) {
	if strings.ContainsFunc(file, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return file, fault.Invalid("path", "a path without control characters is required")
	}
	if !path.IsAbs(file) {
		file = container.Work + "/" + file
	}
	return path.Clean(file), nil
}

// packed returns a tree with the text file at the absolute path, or an empty one if the container has no such file.
func (t *tools) packed(ctx context.Context, c tool.Call, id, file string) (container.Tree, error) {
	name := strings.TrimPrefix(file, "/")
	tree, err := t.archive(ctx, c, id, container.Bounds{Files: 1, File: maxFile, All: maxFile + maxPath},
		"tar", "-chf", "-", "-C", "/", "--", name)
	switch {
	case err != nil:
		return container.Tree{}, err
	case len(tree.Files) == 0 && tree.LeftOut == 0:
		return container.Tree{}, nil
	case len(tree.Files) == 0 || tree.Files[0].Path != name:
		return container.Tree{}, fault.New(fault.Tool, "no_text_file", "This is not a text file of at most 1 MiB.")
	}
	return tree, nil
}

// pieceOf returns the requested part of a file. Offsets count the bytes of the file without its secrets.
func pieceOf(file string, a FileArgs) (FileText, error) {
	shown := obs.RemoveSecrets(file)
	v, err := tool.Within(shown, tool.Window{Offset: a.Offset, Limit: a.Limit, ByteOffset: a.ByteOffset}, maxTold)
	if err != nil {
		return FileText{}, err
	}
	return FileText{Content: &v.Text, From: v.From, Line: v.Line, Lines: v.All, Size: len(shown),
		Truncated: v.From+len(v.Text) < len(shown), Redacted: shown != file, SHA256: patch.Sum(file),
		NextOffset: v.NextOffset, NextByteOffset: v.NextByteOffset}, nil
}

// lostSecret describes the text that the model has not seen because secrets were removed.
const lostSecret = "the redacted secrets"

// partsOf returns the files of a tree as parts, each of them complete.
func partsOf(out Tree) (parts []tool.Part) {
	for _, f := range out.Files {
		p := tool.Part{Text: tool.Text{Name: path.Join(container.Work, f.Path)}, Rest: "Commit the file from the " +
			"container by the sha256 that " + ReadFile + " returns."}
		if obs.Redacted(f.Content) {
			p.Lost = lostSecret
		}
		parts = append(parts, p)
	}
	return parts
}

// partOf returns the part of a file that a result shows.
func partOf(a FileArgs, out FileText) tool.Part {
	from := out.From + out.Offset
	p := tool.Part{Text: tool.Text{Name: a.Path}, Version: out.SHA256, From: from, To: from, Size: out.Size,
		Rest: "Read the rest with " + ReadFile + " and an offset, change only parts of it with edits, or commit the " +
			"file from the container by its sha256."}
	if out.Content != nil {
		p.To += len(*out.Content)
	}
	if out.Redacted {
		p.Lost = lostSecret
	}
	return p
}

// TreeArgs are the arguments of docker.getAllSourceFiles.
type TreeArgs struct {
	ContainerID string `json:"containerId" jsonschema:"The id that createContainer has returned."`
}

// Tree is the result of docker.getAllSourceFiles.
type Tree struct {
	Files   []container.File `json:"files"`
	LeftOut int              `json:"leftOut"` // files that are not text, too long, or too many
	Cut     bool             `json:"cut,omitempty"`

	Redacted bool `json:"redacted,omitempty"` // secrets were removed from some files
}

func (t *tools) sourceFiles() *tool.Tool {
	return tool.Define(tool.Def[TreeArgs, Tree]{
		Name: SourceFiles,
		Description: "Reads all text files below /work in a container of this task, to some 48 KiB in all, without " +
			".git and node_modules. Files that do not fit are counted, and none is cut: read them one by one.",
		Untrusted: true,
		Echoes:    true,
		Shows:     func(_ TreeArgs, out Tree) []tool.Part { return partsOf(out) },
		Refine:    func(s *jsonschema.Schema) { s.Properties["containerId"].Pattern = idPattern },
		Execute: func(ctx context.Context, c tool.Call, a TreeArgs) (Tree, error) {
			tree, err := t.archive(ctx, c, a.ContainerID,
				container.Bounds{Files: maxFiles, File: maxTold, All: maxTold},
				"/bin/sh", "-c", allFiles)
			out := Tree{Files: []container.File{}, LeftOut: tree.LeftOut, Cut: tree.Cut}
			left := maxTold
			for _, f := range tree.Files {
				text := obs.RemoveSecrets(f.Content)
				out.Redacted = out.Redacted || text != f.Content
				size := clip.EncodedLen(f.Path) + clip.EncodedLen(text)
				if size > left {
					out.LeftOut++
					continue
				}
				left -= size
				out.Files = append(out.Files, container.File{Path: f.Path, Content: text})
			}
			return out, err
		},
	})
}

// allFiles packs everything except directories. If there are too many files for one call of tar, a second archive
// follows and is not read.
const allFiles = `cd ` + container.Work + ` && exec find . \( -name .git -o -name node_modules \) -prune -o ` +
	`! -type d -exec tar -cf - {} +`

// archive makes a container pack files, and reads them as they arrive. The container's own tar reads the files with the
// rights of the container's user. The engine's own copy function does not see a tmpfs with Docker, and would follow the
// container's links with the engine's rights.
func (t *tools) archive(ctx context.Context, c tool.Call, id string, b container.Bounds,
	command ...string) (container.Tree, error) {
	e, err := t.engine()
	if err != nil {
		return container.Tree{}, err
	}
	found, err := find(ctx, e, c, id)
	if err != nil {
		return container.Tree{}, err
	}
	process, err := e.NewProcess(ctx, found.ID, command)
	if err != nil {
		return container.Tree{}, nothingDone(err)
	}
	r, w := io.Pipe()
	ran := make(chan error, 1)
	go func() {
		err := e.Run(ctx, process, container.Streams{Stdout: w, Stderr: io.Discard})
		_ = w.CloseWithError(err) // never fails; a nil error ends the transfer
		ran <- err
	}()
	tree, unread := container.ReadTree(r, b)
	_ = r.Close() // never fails, and ends the transfer
	failed := <-ran
	switch {
	case len(tree.Files) > 0 || tree.LeftOut > 0:
		return tree, nil
	case unread != nil && failed != nil:
		return tree, nothingDone(failed)
	}
	return tree, whyNothing(ctx, e, process)
}

// whyNothing returns nil if tar ran and found no such file, and an error if the container has no tar.
func whyNothing(ctx context.Context, e Engine, process string) error {
	p, err := untilEnded(ctx, e, process)
	if err != nil {
		return nothingDone(err)
	}
	if p.ExitCode >= 126 {
		return fault.New(fault.Tool, codeNoTar, "The container's image has no tar, which is required to read files.")
	}
	return nil
}
