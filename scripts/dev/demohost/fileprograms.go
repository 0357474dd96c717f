package demohost

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func cat(c *call) int {
	f, names, ok := c.parse("nu", "number=n")
	if !ok {
		return 1
	}
	if !f.has("n") {
		return c.each(names, func(_ string, r io.Reader) error {
			_, err := io.Copy(c.out, stoppable{c, r})
			return err
		})
	}
	n := 0
	return c.lines(names, func(_, line string) bool {
		n++
		c.printf("%6d\t%s\n", n, line)
		return true
	})
}

func remove(c *call) int {
	f, names, ok := c.parse("rRfivd",
		"recursive=r force=f verbose=v dir=d interactive=i no-preserve-root=N preserve-root=P")
	if !ok {
		return 1
	}
	if len(names) == 0 && !f.has("f") {
		return c.fail(1, "missing operand")
	}
	code := 0
	for _, name := range names {
		abs := c.abs(name)
		info, err := c.disk.lstat(abs)
		switch {
		case err != nil && f.has("f") && errors.Is(err, fs.ErrNotExist):
		case err != nil:
			code = c.fail(1, "cannot remove '%s': %s", name, reason(err))
		case abs == "/":
			code = c.fail(1, "it is dangerous to operate recursively on '/'")
		case info.IsDir() && !f.has("rRd"):
			code = c.fail(1, "cannot remove '%s': Is a directory", name)
		case f.has("i") && !c.sure("remove '%s'? ", name):
		default:
			take := c.disk.root.Remove
			if f.has("rR") {
				take = c.disk.root.RemoveAll
			}
			if err := take(inside(abs)); err != nil {
				code = c.fail(1, "cannot remove '%s': %s", name, reason(err))
			} else if f.has("v") {
				c.printf("removed '%s'\n", name)
			}
		}
	}
	return code
}

func (c *call) sure(format string, args ...any) bool {
	fmt.Fprintf(c.out, c.name+": "+format, args...)
	return strings.HasPrefix(strings.ToLower(c.answer()), "y")
}

func removeDir(c *call) int {
	return c.forEach(func(name string) error {
		if info, err := c.disk.lstat(c.abs(name)); err == nil && !info.IsDir() {
			return syscall.ENOTDIR
		}
		return c.disk.root.Remove(inside(c.abs(name)))
	}, "failed to remove")
}

// forEach calls a function for each operand.
func (c *call) forEach(do func(name string) error, failed string) int {
	_, names, ok := c.parse("pvfhR", "parents=p verbose=v recursive=R")
	if !ok {
		return 1
	}
	if len(names) == 0 {
		return c.fail(1, "missing operand")
	}
	code := 0
	for _, name := range names {
		if err := do(name); err != nil {
			code = c.fail(1, "%s '%s': %s", failed, name, reason(err))
		}
	}
	return code
}

func makeDir(c *call) int {
	parents := slices.ContainsFunc(c.args, func(a string) bool {
		return a == "--parents" || strings.HasPrefix(a, "-") && strings.Contains(a, "p")
	})
	return c.forEach(func(name string) error {
		if !parents {
			return c.disk.mkdir(c.abs(name))
		}
		if c.disk.created.Add(int64(1+strings.Count(name, "/"))) > maxCreated {
			return errFull
		}
		return c.disk.root.MkdirAll(inside(c.abs(name)), 0o755)
	}, "cannot create directory")
}

func touch(c *call) int {
	f, names, ok := c.parse("acmd:", "no-create=c date=d")
	if !ok {
		return 1
	}
	at := c.now()
	if f.has("d") {
		t, err := time.ParseInLocation(time.DateOnly, f['d'], time.Local)
		if days, ok := strings.CutSuffix(f['d'], " days ago"); ok {
			n, e := strconv.Atoi(days)
			t, err = at.AddDate(0, 0, -n), e
		}
		if err != nil {
			return c.fail(1, "invalid date format '%s'", f['d'])
		}
		at = t
	}
	code := 0
	for _, name := range names {
		abs := c.abs(name)
		if _, err := c.disk.stat(abs); err != nil && !f.has("c") {
			w, err := c.disk.open(abs, os.O_WRONLY|os.O_CREATE, 0o644)
			if err != nil {
				code = c.fail(1, "cannot touch '%s': %s", name, reason(err))
				continue
			}
			_ = w.Close() // it is empty
		}
		if err := c.disk.touch(abs, at); err != nil {
			code = c.fail(1, "cannot touch '%s': %s", name, reason(err))
		}
	}
	return code
}

func truncate(c *call) int {
	f, names, ok := c.parse("s:c", "size=s")
	n, err := strconv.ParseInt(f['s'], 10, 64)
	if !ok || err != nil || n < 0 || n > 1<<30 {
		return c.fail(1, "invalid number: '%s'", f['s'])
	}
	code := 0
	for _, name := range names {
		w, err := c.disk.open(c.abs(name), os.O_WRONLY|os.O_CREATE, 0o644)
		if err == nil {
			err = errors.Join(w.(interface{ Truncate(int64) error }).Truncate(n), w.Close())
		}
		if err != nil {
			code = c.fail(1, "cannot open '%s': %s", name, reason(err))
		}
	}
	return code
}

func makeTemp(c *call) int {
	f, _, ok := c.parse("dqut", "directory=d")
	if !ok {
		return 1
	}
	name := fmt.Sprintf("/tmp/tmp.%x", c.now().UnixNano())
	var err error
	if f.has("d") {
		err = c.disk.mkdir(name)
	} else if w, e := c.disk.open(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); e != nil {
		err = e
	} else {
		err = w.Close()
	}
	if err != nil {
		return c.fail(1, "failed to create: %s", reason(err))
	}
	c.printf("%s\n", name)
	return 0
}
