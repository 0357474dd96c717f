package demohost

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"
)

func diskUsage(c *call) int {
	f, names, ok := c.parse("ashkmcbxd:", "all=a summarize=s human-readable=h total=c max-depth=d time=T bytes=b "+
		"one-file-system=x apparent-size=A")
	if !ok {
		return 1
	}
	if len(names) == 0 {
		names = []string{"."}
	}
	depth := f.number('d', 1<<20)
	if f.has("s") {
		depth = 0
	}
	code, total := 0, int64(0)
	for _, name := range names {
		if _, err := c.disk.lstat(c.abs(name)); err != nil {
			code = c.fail(1, "cannot access '%s': %s", name, reason(err))
			continue
		}
		total += c.usage(f, name, c.abs(name), depth, true).size
	}
	if f.has("c") {
		c.used(f, sum{total, c.now()}, "total")
	}
	return code
}

// sum is the size of a folder's contents, and the time of their last change.
type sum struct {
	size int64
	last time.Time
}

func (c *call) usage(f flags, name, abs string, depth int, named bool) (s sum) {
	info, err := c.disk.lstat(abs)
	if err != nil || c.Err() != nil {
		return s
	}
	s = sum{(info.Size() + 4095) / 4096 * 4096, info.ModTime()}
	if info.IsDir() {
		s = sum{4096, time.Time{}}
		entries, _ := c.disk.readDir(abs) // what cannot be listed is empty
		for _, e := range entries {
			below := c.usage(f, path.Join(name, e.Name()), path.Join(abs, e.Name()), depth-1, false)
			s.size += below.size
			if below.last.After(s.last) {
				s.last = below.last
			}
		}
		if s.last.IsZero() {
			s.last = info.ModTime()
		}
	}
	if named || depth >= 0 && (info.IsDir() || f.has("a")) {
		c.used(f, s, name)
	}
	return s
}

func (c *call) used(f flags, s sum, name string) {
	size := strconv.FormatInt((s.size+1023)/1024, 10)
	switch {
	case f.has("h"):
		size = human(s.size)
	case f.has("b"):
		size = strconv.FormatInt(s.size, 10)
	case f.has("m"):
		size = strconv.FormatInt((s.size+mib-1)/mib, 10)
	}
	if f.has("T") {
		c.printf("%s\t%s\t%s\n", size, s.last.Format("2006-01-02 15:04"), name)
		return
	}
	c.printf("%s\t%s\n", size, name)
}

// A filesystem is mounted. base is the space that is used in addition to the visible files.
type filesystem struct {
	device, kind, mount string
	size, base          int64
}

var filesystems = []filesystem{
	{"/dev/vda1", "ext4", "/", 20 << 30, 6_390 * mib},
	{"tmpfs", "tmpfs", "/run", 197 * mib, 1 * mib},
	{"/dev/vdb1", "ext4", "/tmp", 1 << 30, 0},
}

func diskFree(c *call) int {
	f, names, ok := c.parse("hTaklP", "human-readable=h print-type=T all=a portability=P local=l")
	if !ok {
		return 1
	}
	mounted := filesystems
	code := 0
	if len(names) > 0 {
		mounted = nil
		for _, name := range names {
			if _, err := c.disk.stat(c.abs(name)); err != nil {
				code = c.fail(1, "%s: %s", name, reason(err))
				continue
			}
			mounted = append(mounted, mountOf(c.abs(name)))
		}
		if len(mounted) == 0 {
			return code
		}
	}
	head, free := "1K-blocks", "Available"
	if f.has("h") {
		head, free = "Size", "Avail"
	}
	kind := func(s string) string {
		if !f.has("T") {
			return ""
		}
		return fmt.Sprintf(" %-5s", s)
	}
	c.printf("%-10s%s %9s %9s %9s Use%% Mounted on\n", "Filesystem", kind("Type"), head, "Used", free)
	for _, m := range mounted {
		used := m.base + c.disk.size(m.mount, "/tmp")
		free := max(0, m.size-used)
		show := func(n int64) string { return strconv.FormatInt(n/1024, 10) }
		if f.has("h") {
			show = human
		}
		c.printf("%-10s%s %9s %9s %9s %3d%% %s\n", m.device, kind(m.kind), show(m.size), show(used), show(free),
			(used*100+used+free-1)/max(1, used+free), m.mount)
	}
	return code
}

func mountOf(abs string) filesystem {
	found := filesystems[0]
	for _, m := range filesystems[1:] {
		if abs == m.mount || strings.HasPrefix(abs, m.mount+"/") {
			found = m
		}
	}
	return found
}
