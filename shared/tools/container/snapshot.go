package container

import (
	"archive/tar"
	"bytes"
	"path"
	"strings"
	"time"
)

// Snapshot is the part of a repository's files at one commit that is put into a container.
type Snapshot struct {
	Entries []Entry
	LeftOut int // submodules, links that lead out, and invalid names
}

// Entry is a file or a link of a Snapshot.
type Entry struct {
	Path    string // relative and clean
	Program bool   // the file is executable
	Link    string // target of a symbolic link; empty for a file
	Content []byte
}

// Limits of a Snapshot. A Snapshot that exceeds them is not used at all.
const (
	SnapshotFiles = 500
	SnapshotBytes = 8 << 20 // of all files
)

// Inside reports whether the entry stays below the directory that it is put into. That applies to its path and, for a
// link, to its target.
func (e Entry) Inside() bool {
	clean, ok := cleanPath(e.Path)
	if !ok || clean != e.Path {
		return false
	}
	if e.Link == "" {
		return true
	}
	to := path.Join(path.Dir(e.Path), e.Link)
	return !path.IsAbs(e.Link) && to != ".." && !strings.HasPrefix(to, "../") &&
		!strings.ContainsAny(e.Link, "\x00\n\r")
}

// Archive returns the entries as a tar archive, with last as the final file. It leaves out entries that are not Inside.
// All times are the Unix epoch, so that the same commit always gives the same archive.
func (s Snapshot) Archive(last Entry) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range append(s.Entries[:len(s.Entries):len(s.Entries)], last) {
		if !e.Inside() {
			continue
		}
		h := &tar.Header{Typeflag: tar.TypeReg, Name: e.Path, Mode: 0o644, Size: int64(len(e.Content)),
			ModTime: time.Unix(0, 0)}
		if e.Program {
			h.Mode = 0o755
		}
		if e.Link != "" {
			h.Typeflag, h.Linkname, h.Mode, h.Size = tar.TypeSymlink, e.Link, 0o777, 0
		}
		if err := w.WriteHeader(h); err != nil {
			return nil, err
		}
		if _, err := w.Write(e.Content[:h.Size]); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}
