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

// Bounds of an archive that a container makes of its files. Nothing of it is written anywhere.
const (
	maxArchive = 32 << 20 // bytes that are read of it
	maxEntries = 20_000
	maxPath    = 1024 // bytes
)

// File is a text in a container.
type File struct {
	Path    string `json:"path"` // relative, clean, without ".."
	Content string `json:"content"`
}

// Tree is what was read of an archive.
type Tree struct {
	Files   []File
	LeftOut int  // entries that are neither directories nor in Files: links, devices, odd names, no text, too long
	Cut     bool // the archive goes on behind what was read
}

// Bounds say how much of an archive is kept.
type Bounds struct {
	Files int // how many
	File  int // the bytes of one; a longer one is left out
	All   int // the bytes of all with their paths
}

// errNoArchive is of bytes that are no archive from their beginning on.
var errNoArchive = errors.New("container: this is no tar archive")

// ReadTree reads the texts of an archive that a stranger made: regular files with UTF-8 in them, by names that lead
// nowhere else. Links are not followed, and neither is anything unpacked. The error is of an archive that cannot be
// read at all; one that breaks off or is out of bounds is cut.
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

// cleanPath returns a name within the archive, or false if it leads out of it.
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
