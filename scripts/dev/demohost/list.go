package demohost

import (
	"cmp"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

func list(c *call) int {
	f, names, ok := c.parse("aAlhtrSRd1F",
		"all=a human-readable=h reverse=r recursive=R directory=d color=1 full-time=l")
	if !ok {
		return 2
	}
	if len(names) == 0 {
		names = []string{"."}
	}
	code := 0
	var plainFiles, folders []entry
	for _, name := range names {
		info, err := c.disk.lstat(c.abs(name))
		if err == nil && info.Mode()&fs.ModeSymlink != 0 && !f.has("ld") {
			if target, e := c.disk.stat(c.abs(name)); e == nil {
				info = target
			}
		}
		switch {
		case err != nil:
			code = c.fail(2, "cannot access '%s': %s", name, reason(err))
		case info.IsDir() && !f.has("d"):
			folders = append(folders, entry{name, c.abs(name), info})
		default:
			plainFiles = append(plainFiles, entry{name, c.abs(name), info})
		}
	}
	c.entries(f, plainFiles)
	for i, folder := range folders {
		if len(names) > 1 || f.has("R") {
			if i > 0 || len(plainFiles) > 0 {
				c.printf("\n")
			}
			c.printf("%s:\n", folder.name)
		}
		below := c.below(folder, f.has("aA"))
		if f.has("l") {
			c.printf("total %d\n", 4*len(below))
		}
		c.entries(f, below)
		if !f.has("R") {
			continue
		}
		for _, e := range slices.Backward(below) {
			if e.info.IsDir() {
				e.name = path.Join(folder.name, e.name)
				folders = slices.Insert(folders, i+1, e)
			}
		}
	}
	return code
}

type entry struct {
	name, abs string
	info      fs.FileInfo
}

func (c *call) below(folder entry, hidden bool) (out []entry) {
	entries, err := c.disk.readDir(folder.abs)
	if err != nil {
		c.fail(2, "cannot open directory '%s': %s", folder.name, reason(err))
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && (hidden || !strings.HasPrefix(e.Name(), ".")) {
			out = append(out, entry{e.Name(), path.Join(folder.abs, e.Name()), info})
		}
	}
	return out
}

func (c *call) entries(f flags, list []entry) {
	slices.SortStableFunc(list, func(a, b entry) int {
		switch {
		case f.has("t"):
			return b.info.ModTime().Compare(a.info.ModTime())
		case f.has("S"):
			return cmp.Compare(b.info.Size(), a.info.Size())
		}
		return strings.Compare(a.name, b.name)
	})
	if f.has("r") {
		slices.Reverse(list)
	}
	width := 0
	for _, e := range list {
		width = max(width, len(c.sized(f, e.info.Size())))
	}
	for _, e := range list {
		name := e.name
		if f.has("F") && e.info.IsDir() {
			name += "/"
		}
		if !f.has("l") {
			c.printf("%s\n", name)
			continue
		}
		if e.info.Mode()&fs.ModeSymlink != 0 {
			target, _ := c.disk.root.Readlink(inside(e.abs)) // it is one: shown without its target where it is gone
			name += " -> " + target
		}
		c.printf("%s 1 root root %*s %s %s\n", mode(e.info), width, c.sized(f, e.info.Size()), c.when(e.info.ModTime()),
			name)
	}
}

func (c *call) sized(f flags, n int64) string {
	if f.has("h") {
		return human(n)
	}
	return strconv.FormatInt(n, 10)
}

func (c *call) when(t time.Time) string {
	if c.now().Sub(t) > 182*24*time.Hour {
		return t.Format("Jan _2  2006")
	}
	return t.Format("Jan _2 15:04")
}

func mode(info fs.FileInfo) string {
	s := info.Mode().String()
	if info.Mode()&fs.ModeSymlink != 0 {
		return "lrwxrwxrwx"
	}
	return s[:1] + s[len(s)-9:]
}

func tree(c *call) int {
	start := "."
	if len(c.args) > 0 {
		start = c.args[0]
	}
	c.printf("%s\n", start)
	err := c.walk(c.abs(start), func(abs string, info fs.FileInfo) bool {
		if depth := strings.Count(strings.TrimPrefix(abs, c.abs(start)), "/"); depth > 0 {
			c.printf("%s├── %s\n", strings.Repeat("│   ", depth-1), info.Name())
		}
		return true
	})
	if err != nil {
		return c.fail(2, "%s: %s", start, reason(err))
	}
	return 0
}
