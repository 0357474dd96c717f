// Package files gives access to the files of one directory. No name, link or concurrent process makes it leave the
// directory, and it refuses files whose names indicate secrets. Reads and writes are bounded, and a write takes effect
// completely or not at all.
//
// The kernel keeps names within the directory ([os.Root]). This package resolves links itself, because the name of the
// target decides too. Links may be swapped meanwhile, so it compares the resolved file with the opened one.
package files

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// MaxSize is the size limit of a file that is read or written, in bytes.
const MaxSize = 1 << 20

// maxLinks is the number of links that the resolution of one name may follow.
const maxLinks = 32

// ErrTooLarge is the error for a file over [MaxSize].
var ErrTooLarge = fmt.Errorf("the file is over %d KiB", MaxSize>>10)

// Dir is a directory, by its path.
type Dir string

// Open opens a file or a folder for reading. It implements [fs.FS], and takes names such as ./a//b as well.
func (d Dir) Open(name string) (fs.File, error) {
	var f fs.File
	err := d.at("open", name, func(in *os.Root, base string) (err error) {
		f, err = open(in, base)
		return err
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// ReadFile returns a file's content. It implements [fs.ReadFileFS].
func (d Dir) ReadFile(name string) (data []byte, err error) {
	err = d.at("read", name, func(in *os.Root, base string) (err error) {
		f, err := open(in, base)
		if err != nil {
			return err
		}
		data, err = io.ReadAll(f)
		return errors.Join(err, f.Close())
	})
	return data, err
}

// ReadDir returns the entries of a folder in the order of their names, without files and folders that hold secrets.
// It implements [fs.ReadDirFS].
func (d Dir) ReadDir(name string) ([]fs.DirEntry, error) {
	f, err := d.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all, ok := f.(fs.ReadDirFile)
	if !ok {
		return nil, &fs.PathError{Op: "readdir", Path: name, Err: syscall.ENOTDIR}
	}
	entries, err := all.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

// WriteFile replaces a file's content, or creates the file and its missing folders. The file is written completely or
// not at all, also after a crash. An existing file keeps its mode.
func (d Dir) WriteFile(name string, data []byte) error {
	if len(data) > MaxSize {
		return &fs.PathError{Op: "write", Path: name, Err: ErrTooLarge}
	}
	return d.at("write", name, func(in *os.Root, base string) error { return replace(in, base, data) })
}

// at calls do with the folder that contains the resolved name, and with the last part of that name, which is not a
// link. Errors have the name that the caller passed.
func (d Dir) at(op, name string, do func(in *os.Root, base string) error) error {
	err := d.try(op == "write", name, do)
	if err == nil {
		return nil
	}
	var p *fs.PathError
	var l *os.LinkError
	switch {
	case errors.As(err, &p):
		err = p.Err
	case errors.As(err, &l):
		err = l.Err
	}
	return &fs.PathError{Op: op, Path: name, Err: cause(err)}
}

// cause returns the error of the kernel or of this package. All other errors are refusals of os.Root, for which no
// error value exists.
func cause(err error) error {
	var errno syscall.Errno
	for _, known := range []error{fs.ErrPermission, fs.ErrNotExist, fs.ErrInvalid, fs.ErrExist, fs.ErrClosed,
		ErrTooLarge} {
		if errors.Is(err, known) {
			return err
		}
	}
	if errors.As(err, &errno) {
		return err
	}
	return fs.ErrPermission
}

func (d Dir) try(makes bool, name string, do func(in *os.Root, base string) error) error {
	if strings.ContainsRune(name, 0) || name == "" {
		return fs.ErrInvalid
	}
	if !local(name) {
		return fs.ErrPermission
	}
	root, err := os.OpenRoot(string(d))
	if err != nil {
		return err
	}
	defer root.Close()
	resolved, err := resolve(root, name)
	if err != nil {
		return err
	}
	folder, base := path.Split(resolved)
	folder = path.Clean(folder)
	if resolved == "." {
		return do(root, ".")
	}
	if makes {
		if err := root.MkdirAll(filepath.FromSlash(folder), 0o755); err != nil {
			return err
		}
	}
	in, err := root.OpenRoot(filepath.FromSlash(folder))
	if err != nil {
		return err
	}
	defer in.Close()
	if err := stillThere(root, in, folder); err != nil {
		return err
	}
	return do(in, base)
}

// stillThere reports whether an open folder is still the folder of the name, reached without links. Another process may
// have replaced a part of the path with a link since the name was resolved.
func stillThere(root, in *os.Root, folder string) error {
	again, err := resolve(root, folder)
	if err != nil {
		return err
	}
	there, err := root.Lstat(filepath.FromSlash(folder))
	if err != nil {
		return err
	}
	opened, err := in.Stat(".")
	if err != nil {
		return err
	}
	if again != folder || !os.SameFile(there, opened) {
		return fs.ErrPermission
	}
	return nil
}

// local reports whether a name stays within the directory if it has no links.
func local(name string) bool {
	for part := range strings.SplitSeq(filepath.ToSlash(name), "/") {
		if part == ".." {
			return false
		}
	}
	return filepath.IsLocal(name) && !path.IsAbs(name)
}

// resolve returns the path that a name refers to, without links, dots and empty parts. Missing parts keep their
// names. It refuses links that lead out of the directory, and parts that hold secrets.
func resolve(root *os.Root, name string) (string, error) {
	var done []string
	todo := strings.Split(filepath.ToSlash(name), "/")
	for links := 0; len(todo) > 0; {
		part := todo[0]
		todo = todo[1:]
		switch {
		case part == "" || part == ".":
			continue
		case part == ".." && len(done) == 0, part != ".." && secret(part):
			return "", fs.ErrPermission
		case part == "..": // the folder of the link, because the resolved part has no links
			done = done[:len(done)-1]
			continue
		}
		at := filepath.FromSlash(path.Join(append(done, part)...))
		info, err := root.Lstat(at)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			done = append(done, part)
			continue
		}
		target, err := root.Readlink(at)
		if err != nil {
			return "", err
		}
		target = filepath.ToSlash(target)
		if links++; links > maxLinks || path.IsAbs(target) || filepath.VolumeName(target) != "" {
			return "", fs.ErrPermission
		}
		todo = append(strings.Split(target, "/"), todo...)
	}
	return path.Join(".", path.Join(done...)), nil
}

// open opens the file or folder of exactly this name.
func open(in *os.Root, base string) (fs.File, error) {
	f, err := in.OpenFile(base, os.O_RDONLY|syscall.O_NONBLOCK, 0) // a pipe would wait for its writer
	if err != nil {
		return nil, err
	}
	if err := check(in, base, f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &file{f, MaxSize}, nil
}

// check refuses an open file that is not the named one, that is neither a plain file nor a folder, or that is too
// large.
func check(in *os.Root, base string, f *os.File) error {
	opened, err := f.Stat()
	if err != nil {
		return err
	}
	there, err := in.Lstat(base)
	switch {
	case err != nil:
		return err
	case !os.SameFile(opened, there):
		return fs.ErrPermission
	case opened.IsDir():
		return nil
	case !opened.Mode().IsRegular():
		return fs.ErrPermission
	case opened.Size() > MaxSize:
		return ErrTooLarge
	}
	return nil
}

// replace writes a new file and then renames it to the name.
func replace(in *os.Root, base string, data []byte) (err error) {
	there, err := in.Lstat(base)
	switch {
	case err == nil && !there.Mode().IsRegular():
		return fs.ErrPermission
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	name := ".new-" + rand.Text()
	f, err := in.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return err
	}
	if there != nil {
		err = f.Chmod(there.Mode().Perm())
	}
	if err == nil {
		_, err = f.Write(data)
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = in.Rename(name, base)
	}
	if err != nil {
		return errors.Join(err, in.Remove(name))
	}
	return nil
}

// file is an open file that can be read up to a limit, or a folder whose listing leaves out secrets.
type file struct {
	f    *os.File
	left int
}

func (f *file) Stat() (fs.FileInfo, error) { return f.f.Stat() }
func (f *file) Close() error               { return f.f.Close() }

// Read implements [io.Reader].
func (f *file) Read(p []byte) (int, error) {
	n, err := f.f.Read(p[:min(len(p), f.left+1)])
	if f.left -= n; f.left < 0 { // the file has grown since it was opened
		f.left = 0
		return 0, ErrTooLarge
	}
	return n, err
}

// ReadDir implements [fs.ReadDirFile].
func (f *file) ReadDir(n int) ([]fs.DirEntry, error) {
	for {
		entries, err := f.f.ReadDir(n)
		entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return secret(e.Name()) })
		if len(entries) > 0 || n <= 0 || err != nil {
			return entries, err
		}
	}
}
