package container

import (
	"archive/tar"
	"bytes"
	"path"
	"strings"
	"time"
)

// Snapshot is the files of a repository at a commit, as far as they are put into a container.
type Snapshot struct {
	Entries []Entry
	LeftOut int // submodules, links that lead out, and odd names
}

// Entry is a file of a Snapshot, or a link.
type Entry struct {
	Path    string // relative and clean
	Program bool   // it is executable
	Link    string // where a symbolic link leads; empty for a file
	Content []byte
}

// Bounds of a Snapshot. One that exceeds them is not put anywhere in part.
const (
	SnapshotFiles = 500
	SnapshotBytes = 8 << 20 // of all files
)

// Inside reports whether the entry stays below the directory that it is put into: its path, and where it leads if it is
// a link.
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

// Archive returns the entries as a tar archive with last as the file behind all others, and leaves out those that are
// not Inside. All is dated at the beginning of Unix time, so that the same commit is the same archive.
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
