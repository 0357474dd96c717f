package container

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"path"
	"strings"
	"unicode/utf8"
)

// Limits of an archive that a container makes of its files. The archive is not unpacked.
const (
	maxArchive = 32 << 20 // bytes that are read
	maxEntries = 20_000
	maxPath    = 1024 // bytes
)

// File is a text file in a container.
type File struct {
	Path    string `json:"path"` // relative, clean, without ".."
	Content string `json:"content"`
}

// Tree is the content read from an archive.
type Tree struct {
	Files []File
	// LeftOut counts the entries that are neither directories nor in Files: links, devices, invalid names, binary or
	// long files.
	LeftOut int
	Cut     bool // the archive continues after the part that was read
}

// Bounds limit how much of an archive is kept.
type Bounds struct {
	Files int // number of files
	File  int // bytes of one file; longer files are left out
	All   int // bytes of all files with their paths
}

// errNoArchive means that the input does not begin with a tar archive.
var errNoArchive = errors.New("container: not a tar archive")

// ReadTree reads the text files in an archive from an untrusted source: regular files with valid UTF-8, whose names
// stay inside the archive. It follows no links and unpacks nothing. It returns an error only if the archive cannot be
// read at all. If the archive breaks off or exceeds the limits, Cut is true.
func ReadTree(r io.Reader, b Bounds) (t Tree, err error) {
	in := tar.NewReader(io.LimitReader(r, maxArchive))
	size := 0
	for n := 0; ; n++ {
		h, err := in.Next()
		switch {
		case err == io.EOF:
			t.Cut = more(r)
			return t, nil
		case err != nil && n == 0:
			return t, errNoArchive
		case err != nil || n == maxEntries:
			t.Cut = true
			return t, nil
		case h.Typeflag == tar.TypeDir:
			continue
		}
		name, ok := cleanPath(h.Name)
		if !ok || h.Typeflag != tar.TypeReg || h.Size > int64(b.File) || len(t.Files) == b.Files ||
			size+len(name)+int(h.Size) > b.All {
			t.LeftOut++
			continue
		}
		text, err := io.ReadAll(in)
		if err != nil {
			t.Cut = true
			return t, nil
		}
		if !utf8.Valid(text) || strings.ContainsRune(string(text), 0) {
			t.LeftOut++
			continue
		}
		size += len(name) + len(text)
		t.Files = append(t.Files, File{Path: name, Content: string(text)})
	}
}

// more reports whether anything but padding follows.
func more(r io.Reader) bool {
	block := make([]byte, 4<<10)
	for rest := io.LimitReader(r, maxArchive); ; {
		n, err := rest.Read(block)
		if len(bytes.Trim(block[:n], "\x00")) > 0 {
			return true
		}
		if err != nil {
			return false
		}
	}
}

// cleanPath returns the clean form of a name within the archive. It returns false if the name leads out of the archive.
func cleanPath(name string) (string, bool) {
	if name == "" || len(name) > maxPath || path.IsAbs(name) || strings.ContainsAny(name, "\\\x00\n\r") ||
		!utf8.ValidString(name) {
		return "", false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part == ".." {
			return "", false
		}
	}
	clean := path.Clean(name)
	return clean, clean != "."
}
