package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/visible"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
	"github.com/countersign-run/countersign/shared/tools/given"
)

// The names of the tools that transfer files.
const (
	Upload   = "upload_file"
	Download = "download_file"
)

// The error codes of a transfer.
const (
	CodeNoFile    = given.CodeNoFile           // the conversation, or the host, has no such file
	CodeExists    = fault.Code("file_exists")  // a file exists there, and the call does not replace it
	CodeUnwritten = fault.Code("write_failed") // the host's user may not write there, or the disk is full
	CodeTooLarge  = fault.Code("too_large")    // the file is larger than the limit
	CodeNoDigest  = fault.Code("no_digest")    // the host cannot read the file, or cannot compute its SHA-256
)

// maxPath is the size limit of a path, in bytes: PATH_MAX of Linux.
const maxPath = 4096

// checkTransfer returns an error if the card cannot show a path exactly as it is, or if the reason is missing.
func checkTransfer(file, reasoning string) error {
	shown, _ := visible.Line(file)
	dots := func(part string) bool { return part == ".." || part == "." }
	switch {
	case shown != file || visible.Blank(file):
		return fault.Invalid("path", "a path without invisible characters is required")
	case strings.HasSuffix(file, "/") || file == "~" || slices.ContainsFunc(strings.Split(file, "/"), dots):
		return fault.Invalid("path", "a path without . and .. that ends with a file's name is required")
	case visible.Blank(reasoning):
		return fault.Invalid("reasoning", "say why this file is transferred")
	}
	return nil
}

// pathOn returns the absolute path that a call names on the machine.
func pathOn(m *machine, file string) string {
	file = inHome(file, m.Facts.Home)
	if !path.IsAbs(file) {
		file = path.Join(cmp.Or(m.at.Cwd, m.Facts.Home), file)
	}
	return path.Clean(file)
}

// look returns the file at a path that a call names, or reports that none exists. Any other object at the path is an
// error.
func look(ctx context.Context, m *machine, file string) (supervisor.File, error) {
	f, err := m.File(ctx, pathOn(m, file))
	switch {
	case errors.Is(err, supervisor.ErrHome), errors.Is(err, supervisor.ErrMounted):
		return f, notTransferred(err)
	case err != nil: // it has only read
		return f, tool.Transient(err)
	}
	return f, unusable(f)
}

// unusable returns why a file cannot be transferred, or nil.
func unusable(f supervisor.File) error {
	switch f.Kind {
	case supervisor.FileUnreadable:
		return fault.New(fault.Tool, CodeNoDigest, "The host's user may not read the file there.")
	case supervisor.FileFolder:
		return fault.New(fault.Tool, CodeOther, "There is a folder at this path: name a file.")
	case supervisor.FileOther:
		return fault.New(fault.Tool, CodeOther, "The path leads to a pipe, a socket or a device, or to nothing.")
	case supervisor.FileNowhere:
		return fault.New(fault.Tool, CodeNoDir, "The folder of this path does not exist on the host.")
	}
	switch {
	case f.Kind != supervisor.FileRegular || f.SHA256 != "":
		return nil
	case f.Size > supervisor.MaxDigest:
		return fault.New(fault.Tool, CodeTooLarge, "The file there has %s; the limit is %s.", bytesOf(f.Size),
			bytesOf(supervisor.MaxDigest))
	}
	return fault.New(fault.Tool, CodeNoDigest, "The host has no program that computes a SHA-256 (sha256sum, shasum or "+
		"sha256).")
}

// notTransferred returns an error if the host's answer means that nothing was read or written, and otherwise nil.
func notTransferred(err error) error {
	switch {
	case errors.Is(err, supervisor.ErrHome):
		return errNoHome()
	case errors.Is(err, supervisor.ErrMounted):
		return fault.New(fault.Policy, CodeMounted, "The path leads to a mount made on demand or by a user, or "+
			"through another process: a look there may connect to another machine, or run something.")
	case errors.Is(err, supervisor.ErrUnwritten):
		return fault.New(fault.Tool, CodeUnwritten, "The host could not write the file: its user may not write "+
			"there, or the disk is full. Nothing was changed.")
	case errors.Is(err, supervisor.ErrOutside), errors.Is(err, supervisor.ErrSpecial),
		errors.Is(err, supervisor.ErrMissing), errors.Is(err, supervisor.ErrChanged):
		return errFileChanged()
	case errors.Is(err, supervisor.ErrCut), errors.Is(err, supervisor.ErrOther), tool.IsTransient(err):
		return tool.Transient(err)
	}
	return nil
}

// errFileChanged returns the error for a file that differs from the one on the card.
func errFileChanged() error {
	return fault.New(fault.Policy, fault.CodeStaleView, "The file on the host is not the one that was shown. Nothing "+
		"was changed: propose it again.")
}

func bytesOf(n int64) string {
	if n == 1 {
		return "1 byte"
	}
	return fmt.Sprintf("%d bytes", n)
}

// describe adds a file to a card.
func describe(p *tool.Preview, size int64, sha256 string) {
	p.AddField("Size", bytesOf(size))
	p.AddField("SHA-256", sha256)
}
