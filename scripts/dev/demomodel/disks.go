package demomodel

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/base/lazyregexp"
)

func diskUsage(w *work) {
	r, ok := w.run("See how full the disks are.", "df -h")
	if !ok {
		return
	}
	var said []string
	for _, f := range filesystems(r.Output) {
		said = append(said, fmt.Sprintf("%s is %d%% full (%s of %s)", f.mount, f.used, f.taken, f.size))
	}
	if len(said) == 0 {
		w.complete("I could not find out how full the disks are. %s", r.why())
		return
	}
	w.complete("%s.", strings.Join(said, ", "))
}

// disk asks how full the disk of a folder is. If the output does not show it, the task ends.
func (w *work) disk(folder, why string) (found filesystem, ok bool) {
	r, ok := w.run(why, "df -h")
	if !ok {
		return found, false
	}
	found, ok = holding(filesystems(r.Output), folder)
	if !ok {
		w.complete("I could not find out how full the disk of %s is. %s", folder, r.why())
	}
	return found, ok
}

// filesystem is a line of df.
type filesystem struct {
	mount             string
	used              int // percent
	size, taken, free string
}

// filesystems reads what df -h has printed.
func filesystems(output string) (list []filesystem) {
	for line := range strings.Lines(output) {
		f := strings.Fields(line)
		if len(f) < 6 {
			continue
		}
		n := len(f)
		percent, err := strconv.Atoi(strings.TrimSuffix(f[n-2], "%"))
		if err == nil && strings.HasPrefix(f[n-1], "/") {
			list = append(list, filesystem{f[n-1], percent, f[n-5], f[n-4], f[n-3]})
		}
	}
	return list
}

// holding returns the filesystem that a folder is on.
func holding(list []filesystem, folder string) (found filesystem, ok bool) {
	for _, f := range list {
		if (folder == f.mount || strings.HasPrefix(folder, strings.TrimSuffix(f.mount, "/")+"/")) &&
			len(f.mount) > len(found.mount) {
			found, ok = f, true
		}
	}
	return found, ok
}

// cleanUp checks the free space of a folder's disk, proposes to delete the folder's old files, and checks again.
func cleanUp(w *work) {
	folder, limit := w.folder(), 0
	if m := aPercent.FindStringSubmatch(w.text.raw); m != nil {
		limit, _ = strconv.Atoi(m[1]) // two digits
	}
	if folder != "/tmp" && folder != "/var/tmp" {
		w.say("I clean up /tmp and /var/tmp only: old files elsewhere may still be needed, and I cannot tell.")
		return
	}
	before, ok := w.disk(folder, "See how full the disks are, before anything is changed.")
	if !ok {
		return
	}
	if before.used <= limit && limit > 0 {
		w.complete("%s is on %s, which is %d%% full. That is not over %d%%, so nothing was deleted.", folder,
			before.mount, before.used, limit)
		return
	}
	listed, ok := w.run(fmt.Sprintf("%s is on %s, which is %d%% full. See what uses the space, and how old it is.",
		folder, before.mount, before.used), "du -a --time "+folder)
	if !ok {
		return
	}
	old, size, oldest, kept := w.old(listed.Output, folder)
	switch {
	case listed.Output == "" || listed.no() || listed.failed != "":
		w.complete("%s is on %s, which is %d%% full. What takes the room could not be listed, so nothing was "+
			"deleted. %s", folder, before.mount, before.used, listed.why())
		return
	case len(old) == 0:
		w.complete("%s is on %s, which is %d%% full, but no file of a MiB or more in it is older than 7 days. "+
			"Nothing was deleted.", folder, before.mount, before.used)
		return
	}
	why := fmt.Sprintf("These %d files take %s, and none was changed in the last 7 days (the oldest %d days ago). %d "+
		"newer or small ones stay.", len(old), sized(size), oldest, kept)
	removed, ok := w.run(why, "rm -v -- "+strings.Join(old, " "))
	if !ok {
		return
	}
	if removed.no() {
		w.complete("Nothing was deleted, and %s stays %d%% full. %s", before.mount, before.used, removed.why())
		return
	}
	said := fmt.Sprintf("%d old files (%s) were deleted from %s", len(old), sized(size), folder)
	if !removed.ok() {
		said = "Not all was deleted from " + folder + ". " + strings.TrimSuffix(removed.why(), ".")
	}
	after, ok := w.disk(folder, "See how full it is now.")
	if !ok {
		return
	}
	w.complete("%s. %s was %d%% full and is %d%% full now, with %s free.", said, after.mount, before.used, after.used,
		after.free)
}

var (
	aFolder   = lazyregexp.New(`(?:^|\s)(/[\w./-]*\w|/)`)
	aPercent  = lazyregexp.New(`(\d{1,2})\s*(?:%|percent)`)
	plainPath = lazyregexp.New(`^[\w./@%+,:=-]+$`)
)

// folder returns the folder that the request names, or /tmp.
func (w *work) folder() string {
	if m := aFolder.FindStringSubmatch(w.text.raw); m != nil {
		return path.Clean(m[1])
	}
	return "/tmp"
}

// oldAfter is the age at which the model proposes to delete a file of a temporary folder.
const (
	oldAfter = 7 * 24 * time.Hour
	bigFrom  = 1024 // KiB
	mostOld  = 12   // files of one command
)

// old picks the old and big files from the output of du, the biggest first.
func (w *work) old(output, folder string) (names []string, kib int64, oldest, kept int) {
	type file struct {
		name string
		kib  int64
		days int
	}
	var files []file
	var paths []string
	for line := range strings.Lines(output) {
		f := strings.SplitN(strings.TrimRight(line, "\r\n"), "\t", 3)
		if len(f) != 3 {
			continue
		}
		size, err1 := strconv.ParseInt(f[0], 10, 64)
		at, err2 := time.ParseInLocation("2006-01-02 15:04", f[1], w.now.Location())
		paths = append(paths, f[2])
		if err1 != nil || err2 != nil || !strings.HasPrefix(f[2], folder+"/") || !plainPath.MatchString(f[2]) {
			continue
		}
		files = append(files, file{f[2], size, int(w.now.Sub(at) / (24 * time.Hour))})
	}
	slices.SortStableFunc(files, func(a, b file) int { return int(b.kib - a.kib) })
	for _, f := range files {
		isFolder := slices.ContainsFunc(paths, func(p string) bool { return strings.HasPrefix(p, f.name+"/") })
		switch {
		case isFolder:
		case f.kib >= bigFrom && time.Duration(f.days)*24*time.Hour >= oldAfter && len(names) < mostOld:
			names, kib, oldest = append(names, f.name), kib+f.kib, max(oldest, f.days)
		default:
			kept++
		}
	}
	return names, kib, oldest, kept
}
