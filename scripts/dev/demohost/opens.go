package demohost

import (
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	judge "github.com/countersign-run/countersign/shared/terminal/shell"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
)

// maxLinks is the maximum number of links in a path, as on Linux.
const maxLinks = 40

// real returns a path with all links resolved.
func (d *disk) real(abs string) (string, error) {
	at, rest := "/", strings.Split(strings.Trim(path.Clean(abs), "/"), "/")
	for links := 0; len(rest) > 0; {
		next := path.Join(at, rest[0])
		rest = rest[1:]
		info, err := d.lstat(next)
		switch {
		case err != nil:
			return "", err
		case info.Mode()&fs.ModeSymlink == 0:
			at = next
			continue
		}
		if links++; links > maxLinks {
			return "", &fs.PathError{Op: "open", Path: abs, Err: syscall.ELOOP}
		}
		target, err := d.root.Readlink(inside(next))
		if err != nil {
			return "", err
		}
		if path.IsAbs(target) {
			at = "/"
		}
		rest = append(strings.Split(strings.Trim(target, "/"), "/"), rest...)
	}
	return at, nil
}

// open checks the files that a command reads without approval, and passes their names instead of descriptors to the
// command, because only this machine's own user can change links in the meantime. It returns the reason why the command
// must not start, or "".
func (h *Host) open(folders []string, files bool, paths []supervisor.Path, command string) (line, why string) {
	d := h.machine.disk
	for i, folder := range folders {
		folders[i], _ = d.real(folder) // a missing folder contains nothing
	}
	for i, p := range paths {
		lead, err := d.real(p.Name)
		if err != nil {
			return "", "missing"
		}
		within := func(folder string) bool {
			return folder != "" && (lead == folder || strings.HasPrefix(lead, strings.TrimSuffix(folder, "/")+"/"))
		}
		if !slices.ContainsFunc(folders, within) {
			return "", "outside"
		}
		if info, err := d.stat(lead); err != nil || !info.Mode().IsRegular() && (files || !info.IsDir()) {
			return "", "special"
		}
		command = strings.ReplaceAll(command, supervisor.Opened(i), judge.Quote([]string{p.Shown}))
	}
	return command, ""
}
