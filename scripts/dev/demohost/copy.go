package demohost

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
)

func move(c *call) int {
	return c.pairs("move", func(_ flags, from, to string) error { return c.disk.root.Rename(inside(from), inside(to)) })
}

func duplicate(c *call) int {
	failed := 0
	code := c.pairs("copy", func(f flags, from, to string) error {
		if to == from || strings.HasPrefix(to, strings.TrimSuffix(from, "/")+"/") {
			return syscall.EINVAL
		}
		return c.walk(from, func(abs string, info fs.FileInfo) bool {
			dest := to + strings.TrimPrefix(abs, from)
			switch {
			case info.IsDir() && !f.has("rRa"):
				failed = c.fail(1, "-r not specified; omitting directory '%s'", abs)
				return false
			case info.IsDir():
				if err := c.disk.mkdir(dest); err != nil && !errors.Is(err, fs.ErrExist) {
					failed = c.fail(1, "cannot create directory '%s': %s", dest, reason(err))
				}
			case info.Mode().IsRegular():
				if err := c.copy(abs, dest, info); err != nil {
					failed = c.fail(1, "cannot create '%s': %s", dest, reason(err))
				}
			}
			return true
		})
	})
	return max(code, failed)
}

// pairs calls do with each source and its target.
func (c *call) pairs(what string, do func(f flags, from, to string) error) int {
	f, names, ok := c.parse("rRafnpv", "recursive=r archive=a force=f no-clobber=n preserve=p verbose=v")
	if !ok {
		return 1
	}
	if len(names) < 2 {
		return c.fail(1, "missing destination file operand")
	}
	last := c.abs(names[len(names)-1])
	code := 0
	for _, name := range names[:len(names)-1] {
		from := c.abs(name)
		if _, err := c.disk.lstat(from); err != nil {
			code = c.fail(1, "cannot stat '%s': %s", name, reason(err))
			continue
		}
		to := c.target(from, last)
		if _, err := c.disk.lstat(to); err == nil && f.has("n") {
			continue
		}
		if err := do(f, from, to); err != nil {
			code = c.fail(1, "cannot %s '%s': %s", what, name, reason(err))
		} else if f.has("v") {
			c.printf("'%s' -> '%s'\n", from, to)
		}
	}
	return code
}

// target returns the destination of a copied file. In a folder, the file keeps its name.
func (c *call) target(source, to string) string {
	if info, err := c.disk.stat(to); err == nil && info.IsDir() {
		return path.Join(to, path.Base(source))
	}
	return to
}

func (c *call) copy(from, to string, info fs.FileInfo) error {
	r, err := c.disk.open(from, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := c.disk.open(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(struct{ io.Writer }{w}, stoppable{c, r})
	return errors.Join(err, w.Close())
}

// link creates links. A symbolic link is stored relative to its folder, because absolute links are not followed.
func link(c *call) int {
	f, names, ok := c.parse("sfnvr", "symbolic=s force=f relative=r")
	if !ok {
		return 1
	}
	if len(names) != 2 {
		return c.fail(1, "missing file operand")
	}
	to := c.target(names[0], c.abs(names[1]))
	if f.has("f") {
		_ = c.disk.root.Remove(inside(to)) // there may be none
	}
	var err error
	if f.has("s") {
		target := names[0]
		if path.IsAbs(target) {
			target = relative(path.Dir(to), target)
		}
		err = c.disk.root.Symlink(target, inside(to))
	} else {
		err = c.disk.root.Link(inside(c.abs(names[0])), inside(to))
	}
	if err != nil {
		return c.fail(1, "failed to create link '%s': %s", names[1], reason(err))
	}
	return 0
}

// relative returns the path relative to a folder.
func relative(dir, abs string) string {
	from, to := strings.Split(strings.Trim(dir, "/"), "/"), strings.Split(strings.Trim(path.Clean(abs), "/"), "/")
	if from[0] == "" {
		from = nil
	}
	for len(from) > 0 && len(to) > 1 && from[0] == to[0] {
		from, to = from[1:], to[1:]
	}
	return strings.Repeat("../", len(from)) + strings.Join(to, "/")
}

func readLink(c *call) int {
	f, names, ok := c.parse("femnqsvzLP", "canonicalize=f")
	if !ok {
		return 1
	}
	code := 0
	for _, name := range names {
		target, err := c.disk.root.Readlink(inside(c.abs(name)))
		switch {
		case c.name == "readlink" && !f.has("fem"):
			if err != nil {
				code = 1
				continue
			}
			c.printf("%s\n", target)
		default:
			abs := c.abs(name)
			for range 40 {
				if target, err = c.disk.root.Readlink(inside(abs)); err != nil {
					break
				}
				abs = resolve(path.Dir(abs), target)
			}
			if _, err := c.disk.lstat(abs); err != nil && f.has("e") {
				code = c.fail(1, "%s: %s", name, reason(err))
				continue
			}
			c.printf("%s\n", abs)
		}
	}
	return code
}
