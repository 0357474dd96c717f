package demohost

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
)

// disk is the machine's disk: a folder that no path leaves. Paths are absolute, as on the machine.
type disk struct {
	root    *os.Root
	most    int64 // bytes that may be written
	written atomic.Int64
	created atomic.Int64
}

// Limits of writes until the server restarts, so that no command fills the disk.
const (
	maxWritten = 256 << 20
	maxCreated = 20_000
)

var errFull = &fs.PathError{Op: "write", Path: "disk", Err: syscall.ENOSPC}

// inside returns the path below the folder. A path with too many .. ends at the root, as on any machine.
func inside(abs string) string {
	return strings.TrimPrefix(path.Clean("/"+abs), "/") + map[bool]string{true: "."}[path.Clean("/"+abs) == "/"]
}

// resolve returns the absolute path of a name that a command in the directory uses.
func resolve(dir, name string) string {
	if path.IsAbs(name) {
		return path.Clean(name)
	}
	return path.Join("/", dir, name)
}

func (d *disk) stat(abs string) (fs.FileInfo, error)  { return d.root.Stat(inside(abs)) }
func (d *disk) lstat(abs string) (fs.FileInfo, error) { return d.root.Lstat(inside(abs)) }

func (d *disk) readDir(abs string) ([]fs.DirEntry, error) {
	return fs.ReadDir(d.root.FS(), inside(abs))
}

func (d *disk) readFile(abs string) ([]byte, error) { return d.root.ReadFile(inside(abs)) }

// open opens a file or a simulated device.
func (d *disk) open(abs string, flag int, perm fs.FileMode) (io.ReadWriteCloser, error) {
	write := flag&(os.O_WRONLY|os.O_RDWR) != 0
	switch {
	case abs == "/dev/null" && write:
		return discard{}, nil
	case abs == "/dev/null":
		return nothing()
	case abs == "/dev/full" && write:
		return full{}, nil
	}
	if flag&os.O_CREATE != 0 {
		if _, err := d.stat(abs); err != nil && d.created.Add(1) > maxCreated {
			return nil, &fs.PathError{Op: "open", Path: abs, Err: syscall.ENOSPC}
		}
	}
	f, err := d.root.OpenFile(inside(abs), flag, perm)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: abs, Err: plain(err)}
	}
	if !write {
		return f, nil
	}
	return &writer{f, d}, nil
}

// writer is a file that counts written bytes. It has none of the file's other ways to write.
type writer struct {
	file *os.File
	disk *disk
}

func (w *writer) Read(p []byte) (int, error) { return w.file.Read(p) }
func (w *writer) Close() error               { return w.file.Close() }

// Truncate sets the file's length; added bytes take no space.
func (w *writer) Truncate(size int64) error { return w.file.Truncate(size) }

func (w *writer) Write(p []byte) (int, error) {
	if w.disk.written.Add(int64(len(p))) > w.disk.most {
		return 0, errFull
	}
	return w.file.Write(p)
}

func (d *disk) mkdir(abs string) error {
	if d.created.Add(1) > maxCreated {
		return errFull
	}
	return d.root.Mkdir(inside(abs), 0o755)
}

func (d *disk) write(abs string, content []byte, at time.Time) error {
	if err := d.root.MkdirAll(inside(path.Dir(abs)), 0o755); err != nil {
		return err
	}
	return errors.Join(d.root.WriteFile(inside(abs), content, 0o644), d.touch(abs, at))
}

// sparse creates a file of the given length that takes no space.
func (d *disk) sparse(abs string, size int64, at time.Time) error {
	if err := d.write(abs, nil, at); err != nil {
		return err
	}
	f, err := d.root.OpenFile(inside(abs), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(size), f.Close(), d.touch(abs, at))
}

func (d *disk) touch(abs string, at time.Time) error { return d.root.Chtimes(inside(abs), at, at) }

// size returns the bytes of all files at or below a path.
func (d *disk) size(abs string, skip ...string) (n int64) {
	info, err := d.lstat(abs)
	if err != nil {
		return 0
	}
	if !info.IsDir() {
		return info.Size()
	}
	entries, _ := d.readDir(abs) // what cannot be listed is empty
	for _, e := range entries {
		below := path.Join(abs, e.Name())
		if len(skip) > 0 && below == skip[0] {
			continue
		}
		n += d.size(below, skip...)
	}
	return n + 4096
}

// plain returns the error as a real machine would word it, without the path of the disk's folder.
func plain(err error) error {
	var number syscall.Errno
	switch {
	case err == nil:
		return nil
	case errors.As(err, &number):
		return number
	case errors.Is(err, fs.ErrNotExist):
		return syscall.ENOENT
	case errors.Is(err, fs.ErrExist):
		return syscall.EEXIST
	case errors.Is(err, fs.ErrPermission):
		return syscall.EACCES
	}
	return syscall.ENOENT // a link that leads out of the machine leads nowhere
}

// reason returns the C library's text for an error.
func reason(err error) string {
	s := plain(err).Error()
	return strings.ToUpper(s[:1]) + s[1:]
}

type discard struct{}

func (discard) Read([]byte) (int, error)    { return 0, io.EOF }
func (discard) Write(p []byte) (int, error) { return len(p), nil }
func (discard) Close() error                { return nil }

type full struct{ discard }

func (full) Write([]byte) (int, error) { return 0, errFull }

// nothing returns an empty file. The interpreter needs a goroutine to read from anything that is not a
// file.
func nothing() (io.ReadWriteCloser, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("open /dev/null: %w", err)
	}
	return r, w.Close()
}
