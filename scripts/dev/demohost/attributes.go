package demohost

import (
	"io/fs"
	"os"
	"strconv"
	"strings"
)

func status(c *call) int {
	f, names, ok := c.parse("c:", "format=c")
	if !ok {
		return 1
	}
	code := 0
	for _, name := range names {
		info, err := c.disk.lstat(c.abs(name))
		if err != nil {
			code = c.fail(1, "cannot statx '%s': %s", name, reason(err))
			continue
		}
		if f.has("c") {
			c.printf("%s\n", strings.NewReplacer("%n", name, "%s", strconv.FormatInt(info.Size(), 10), "%U", user, "%G",
				user,
				"%A", mode(info), "%a", strconv.FormatUint(uint64(info.Mode().Perm()), 8), "%F", kind(info),
				"%y", info.ModTime().Format("2006-01-02 15:04:05.000000000 -0700"),
				"%Y", strconv.FormatInt(info.ModTime().Unix(), 10)).Replace(f['c']))
			continue
		}
		c.printf("  File: %s\n  Size: %d\t%s\nAccess: (%04o/%s)  Uid: (0/root)   Gid: (0/root)\nModify: %s\n", name,
			info.Size(), kind(info), info.Mode().Perm(), mode(info), info.ModTime().Format("2006-01-02 15:04:05 -0700"))
	}
	return code
}

func kind(info fs.FileInfo) string {
	switch {
	case info.IsDir():
		return "directory"
	case info.Mode()&fs.ModeSymlink != 0:
		return "symbolic link"
	case info.Size() == 0:
		return "regular empty file"
	}
	return "regular file"
}

func kindOf(c *call) int {
	for _, name := range c.args {
		info, err := c.disk.lstat(c.abs(name))
		if err != nil {
			c.printf("%s: cannot open `%s' (%s)\n", name, name, reason(err))
			continue
		}
		what := kind(info)
		if what == "regular file" {
			what = "data"
			start := make([]byte, 512)
			if f, err := c.disk.open(c.abs(name), os.O_RDONLY, 0); err == nil {
				n, _ := f.Read(start) // empty: data
				_ = f.Close()
				if n > 0 && !strings.ContainsRune(string(start[:n]), 0) {
					what = "ASCII text"
				}
			}
		}
		c.printf("%s: %s\n", name, what)
	}
	return 0
}

func chmod(c *call) int {
	if len(c.args) < 2 {
		return c.fail(1, "missing operand")
	}
	args := c.args
	deep := args[0] == "-R"
	if deep {
		args = args[1:]
	}
	code := 0
	for _, name := range args[1:] {
		err := c.walk(c.abs(name), func(abs string, info fs.FileInfo) bool {
			perm := info.Mode().Perm()
			if n, err := strconv.ParseUint(args[0], 8, 16); err == nil {
				perm = fs.FileMode(n) & 0o777
			} else {
				perm = symbolic(perm, args[0])
			}
			perm |= 0o600 // its owner on the real machine must be able to delete it
			if info.IsDir() {
				perm |= 0o700
			}
			if info.Mode()&fs.ModeSymlink == 0 {
				_ = c.disk.root.Chmod(inside(abs), perm) // it is gone meanwhile
			}
			return deep
		})
		if err != nil {
			code = c.fail(1, "cannot access '%s': %s", name, reason(err))
		}
	}
	return code
}

// symbolic parses a symbolic mode such as u+x.
func symbolic(perm fs.FileMode, how string) fs.FileMode {
	at := strings.IndexAny(how, "+-=")
	if at < 0 {
		return perm
	}
	var who, bits fs.FileMode
	for _, r := range how[:at] {
		who |= map[rune]fs.FileMode{'u': 0o700, 'g': 0o070, 'o': 0o007, 'a': 0o777}[r]
	}
	if at == 0 {
		who = 0o777
	}
	for _, r := range how[at+1:] {
		bits |= map[rune]fs.FileMode{'r': 0o444, 'w': 0o222, 'x': 0o111}[r]
	}
	switch how[at] {
	case '+':
		return perm | bits&who
	case '-':
		return perm &^ (bits & who)
	}
	return perm&^who | bits&who
}

func chown(c *call) int {
	return c.forEach(func(name string) error {
		if strings.Contains(name, ":") || c.name == "chgrp" || !strings.Contains(name, "/") {
			return nil // the owner; all files are root's here
		}
		_, err := c.disk.stat(c.abs(name))
		return err
	}, "cannot access")
}
