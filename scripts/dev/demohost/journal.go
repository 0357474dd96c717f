package demohost

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"time"
)

// The keeper's folder on the machine's disk. It has the form of the real keeper: a folder for each command, and the
// stamp.
const (
	keeperDir = home + "/.countersign"
	firstKept = 1 << 20   // bytes at the beginning of a command's output that are kept
	lastKept  = 192 << 10 // and at its end
)

func journalDir(id string) string { return path.Join(keeperDir, id) }

// stamp returns the ID of the folder of journals, and creates it if it is missing.
func (h *Host) stamp(create bool) string {
	d := h.machine.disk
	name := path.Join(keeperDir, "stamp")
	if text, err := d.readFile(name); err == nil {
		stamp, _, _ := strings.Cut(string(text), "\n")
		return stamp
	}
	if !create {
		return ""
	}
	stamp := rand.Text()
	if err := d.root.MkdirAll(inside(keeperDir), 0o700); err != nil {
		return ""
	}
	if err := d.write(name, []byte(stamp+"\n"), h.now()); err != nil {
		return ""
	}
	return stamp
}

// claimed reports whether a command was started, even if it has deleted its journal. The stamp's file has a line
// /ID/WHEN for each started command, with WHEN in seconds. A host that has lost this file has another stamp, and counts
// as another host.
func (h *Host) claimed(id string) bool {
	text, err := h.machine.disk.readFile(path.Join(keeperDir, "stamp"))
	return err == nil && strings.Contains(string(text), "\n/"+id+"/")
}

// claim records the start of a command, and drops commands that are so old that settle never reports them as not
// started. The caller holds claims.
func (h *Host) claim(id string) error {
	name := path.Join(keeperDir, "stamp")
	text, err := h.machine.disk.readFile(name)
	if err != nil {
		return err
	}
	stamp, lines, _ := strings.Cut(string(text), "\n")
	kept := stamp + "\n"
	for line := range strings.Lines(lines) {
		_, when, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "/"), "/")
		if at, err := strconv.ParseInt(when, 10, 64); err == nil && h.now().Sub(time.Unix(at, 0)) < maxAge {
			kept += line
		}
	}
	return errors.Join(h.machine.disk.write(name+".new", fmt.Appendf(nil, "%s/%s/%d\n", kept, id, h.now().Unix()),
		h.now()), h.machine.disk.root.Rename(inside(name+".new"), inside(name)))
}

// same reports whether the caller knows the host in this boot and with these journals.
func (h *Host) same(r request) bool {
	stamp := h.stamp(false)
	return stamp != "" && r.values["stamp"] == stamp && r.values["boot"] == h.boot()
}

func (h *Host) boot() string {
	h.machine.mu.Lock()
	defer h.machine.mu.Unlock()
	return h.machine.state.Boot
}

func (h *Host) exists(name string) bool {
	_, err := h.machine.disk.stat(name)
	return err == nil
}

// forbid prevents a command that was not started from ever starting, and reports whether it could. The caller holds
// claims.
func (h *Host) forbid(id string) bool {
	j := journalDir(id)
	if !h.exists(keeperDir) {
		return false
	}
	if !h.claimed(id) && h.machine.disk.root.Mkdir(inside(j), 0o700) == nil {
		by := fmt.Sprintf("%s %s\n", h.boot(), h.stamp(false))
		if h.machine.disk.write(path.Join(j, "never"), []byte(by), h.now()) != nil {
			return false
		}
	}
	return h.exists(path.Join(j, "never"))
}

// forbidden reports whether a command was forbidden, and whether by the host that the caller knows: if the journals
// were deleted since then, the command may have started before.
func (h *Host) forbidden(r request) (yes, same bool) {
	by, err := h.machine.disk.readFile(path.Join(journalDir(r.values["id"]), "never"))
	return err == nil, strings.TrimSpace(string(by)) == r.values["boot"]+" "+r.values["stamp"]
}

// settle returns the outcome of a command, and the last line of the answer.
func (h *Host) settle(r request) (state, end string) {
	h.claims.Lock()
	defer h.claims.Unlock()
	id := r.values["id"]
	running := h.job(id) != nil // asked first: the end of a command is written before its job is removed
	forbidden, same := h.forbidden(r)
	e, ended := h.ended(id)
	switch {
	case forbidden && same:
		return "never", "over"
	case forbidden:
		return "unknown", "over"
	case ended:
		return "done", e.line()
	case running:
		return "running", "over"
	case h.exists(journalDir(id)):
		return "lost", "over"
	case !h.same(r) || h.now().Unix()-int64(r.number("since", 0)) >= int64((maxAge-24*time.Hour)/time.Second),
		h.claimed(id):
		return "unknown", "over"
	case r.values["never"] != "" && h.forbid(id):
		return "never", "over"
	}
	return "absent", "over"
}

// ending returns the last line of a command's streams, which states how the command ended.
type ending struct {
	Code  int           `json:"code"`
	Cwd   string        `json:"cwd"`
	Real  string        `json:"real,omitempty"` // Cwd without links
	How   string        `json:"how"`            // exited, stopped, limit, input, hangup
	Took  time.Duration `json:"took"`
	Left  int           `json:"left"`
	Bytes int64         `json:"bytes"`
}

func (e ending) line() string {
	return fmt.Sprintf("%d:%s:%s:%d:%d:%d::%s", e.Code, encoded(e.Cwd), e.How, e.Took.Milliseconds(), e.Left, e.Bytes,
		encoded(e.Real))
}

// encoded writes each byte as %XX if any byte is not plain.
func encoded(s string) string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789/._-"
	if strings.Trim(s, letters) == "" {
		return s
	}
	var b strings.Builder
	for i := range len(s) {
		fmt.Fprintf(&b, "%%%02x", s[i])
	}
	return b.String()
}

// ended reads how a command ended.
func (h *Host) ended(id string) (e ending, ok bool) {
	text, err := h.machine.disk.readFile(path.Join(journalDir(id), "exit"))
	return e, err == nil && json.Unmarshal(text, &e) == nil
}

// keep writes a file of a journal.
func (h *Host) keep(id, name string, content []byte) error {
	f, err := h.machine.disk.root.OpenFile(inside(path.Join(journalDir(id), name)), os.O_WRONLY|os.O_CREATE|os.O_TRUNC,
		0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	return errors.Join(err, f.Close())
}

// maxJournals is the maximum number of journals, and maxAge their maximum age.
const (
	maxJournals = 50
	maxAge      = 7 * 24 * time.Hour
)

// prune deletes old journals, and the output of all commands except the latest.
func (h *Host) prune() {
	entries, err := h.machine.disk.readDir(keeperDir)
	if err != nil {
		return // it was deleted
	}
	var ended []fs.FileInfo
	for _, e := range entries {
		info, err := e.Info()
		if err != nil || !e.IsDir() || !h.exists(path.Join(journalDir(e.Name()), "exit")) {
			continue
		}
		if h.now().Sub(info.ModTime()) > maxAge {
			_ = h.machine.disk.root.RemoveAll(inside(journalDir(e.Name()))) // tried again with the next command
			continue
		}
		ended = append(ended, info)
	}
	if len(ended) <= maxJournals {
		return
	}
	oldest := ended[0]
	for _, info := range ended[1:] {
		if info.ModTime().Before(oldest.ModTime()) && h.exists(path.Join(journalDir(info.Name()), "out")) {
			oldest = info
		}
	}
	for _, name := range []string{"out", "rest", "cmd"} {
		_ = h.machine.disk.root.Remove(inside(path.Join(journalDir(oldest.Name()), name))) // it may not be there
	}
}

// carried returns the state that a terminal's commands pass on to later commands.
func (h *Host) carried(terminal, grammar string) map[string]string {
	vars := base()
	for _, v := range []string{"PAGER", "GIT_PAGER", "SYSTEMD_PAGER"} {
		vars[v] = "cat"
	}
	vars["DEBIAN_FRONTEND"] = "noninteractive"
	if terminal == "" {
		return vars
	}
	text, err := h.machine.disk.readFile(path.Join(keeperDir, "terminals", terminal, "env."+grammar))
	var kept map[string]string
	if err == nil && json.Unmarshal(text, &kept) == nil {
		return kept
	}
	return vars
}

func (h *Host) carry(terminal, grammar string, vars map[string]string) error {
	dir := path.Join(keeperDir, "terminals", terminal)
	if err := h.machine.disk.root.MkdirAll(inside(dir), 0o700); err != nil {
		return err
	}
	delete(vars, "COUNTERSIGN_ACTION")
	text, err := json.Marshal(vars)
	if err != nil {
		return err
	}
	return h.machine.disk.write(path.Join(dir, "env."+grammar), text, h.now())
}
