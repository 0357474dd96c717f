package supervisortest

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/countersign-run/countersign/shared/terminal/supervisor"
)

// opens reads files through descriptors that were opened before. The host refuses files elsewhere, and anything that is
// not a file, before a command starts.
func opens(w *world) {
	out, _ := w.start(w.a("mkdir -p 'in/a b' && cd in && printf 'one\\n' >file && printf 'two\\n' >'a b/file' && " +
		"ln -s file link && ln -s /etc/passwd out && ln -s nowhere broken && pwd -P"))
	dir := strings.TrimSpace(out)
	read := func(command string, paths ...string) supervisor.Start {
		o := supervisor.Opens{Within: []string{dir + "/nowhere", dir}, Walks: strings.Contains(command, "grep -r")}
		for i, p := range paths {
			o.Paths = append(o.Paths, supervisor.Path{Name: dir + "/" + p, Shown: p})
			command = strings.ReplaceAll(command, fmt.Sprint("%", i), supervisor.Opened(i))
		}
		s := w.a(command)
		s.Plain, s.Opens, s.Cwd = true, o, dir
		return s
	}
	w.expect(read("cat %0 %1 %2 %3", "file", "a b/file", "link", "file"), "one\ntwo\none\none\n", 0)
	w.expect(read("head -v %0 %1", "file", "a b/file"), "==> file <==\none\n\n==> a b/file <==\ntwo\n", 0)
	w.expect(read("grep -c two %0 %1", "file", "a b/file"), "file:0\na b/file:1\n", 0)
	w.expect(read("grep three %0", "file"), "", 1)
	refused := func(why error, s supervisor.Start) {
		w.Helper()
		s.Handle = w.k.Handle()
		if r, err := w.k.Start(w.Context(), s, io.Discard); !errors.Is(err, why) {
			w.Errorf("%q: %+v, %v; want %v", s.Command, r, err, why)
		}
		state, _, err := w.k.Reconcile(w.Context(), s.ID, s.Handle, false)
		if state != supervisor.Absent || err != nil {
			w.Errorf("%q: %s, %v", s.Command, state, err)
		}
	}
	refused(supervisor.ErrOutside, read("cat %0", "out"))
	refused(supervisor.ErrOutside, read("cat %0 %1", "file", "out"))
	folder := read("diff %0 %1", "file", "a b")
	folder.Opens.Files = true
	refused(supervisor.ErrSpecial, folder)
	folder = read("cat %0", "file")
	folder.Opens.Files = true
	w.expect(folder, "one\n", 0)
	refused(supervisor.ErrMissing, read("cat %0", "broken"))
	if _, r := w.start(w.a("cd in && mkfifo q")); r.Exit == 0 {
		refused(supervisor.ErrSpecial, read("cat %0", "q"))
	}
	gnu := w.a("grep --version </dev/null | grep GNU")
	gnu.Plain = true
	walk := read("grep -r two %0", "a b")
	if _, err := w.k.Start(w.Context(), walk, io.Discard); !errors.Is(err, supervisor.ErrWalk) {
		w.expect(read(walk.Command, "a b"), "a b/file:two\n", 0)
	} else if _, r := w.start(gnu); r.Exit == 0 {
		w.Error("GNU's grep searches no folder")
	}
}

// pins starts commands whose program and directory are pinned. If the program file is another one, or a link now leads
// the directory elsewhere, the host refuses the command and starts nothing.
func pins(w *world) {
	out, _ := w.start(w.a("mkdir -p pin/a pin/b && cd pin && ln -s a current && printf 'echo one\\n' >a/run && " +
		"printf 'echo two\\n' >b/run && chmod 755 a/run b/run && pwd -P"))
	place := strings.TrimSpace(out)
	dir := place + "/current"
	pinned := func(command, name string) (s supervisor.Start) {
		file, err := w.k.Program(w.Context(), dir, name)
		if err != nil || !strings.HasPrefix(file, place+"/a\n") {
			w.Fatalf("the program %s is %q, %v; want a file in %s/a", name, file, err, place)
		}
		s = w.a(command)
		s.Plain, s.Cwd, s.Pin = true, dir, supervisor.Pin{Name: name, File: file}
		return s
	}
	run, list := pinned("./run", "./run"), pinned("ls", "ls")
	again := func(s supervisor.Start) supervisor.Start {
		next := w.a(s.Command)
		next.Plain, next.Cwd, next.Pin = true, dir, s.Pin
		return next
	}
	refused := func(s supervisor.Start) {
		w.Helper()
		s.Handle = w.k.Handle()
		if r, err := w.k.Start(w.Context(), s, io.Discard); !errors.Is(err, supervisor.ErrProgram) {
			w.Errorf("%q: %+v, %v; want %v", s.Command, r, err, supervisor.ErrProgram)
		}
		state, _, err := w.k.Reconcile(w.Context(), s.ID, s.Handle, false)
		if state != supervisor.Absent || err != nil {
			w.Errorf("%q: %s, %v", s.Command, state, err)
		}
	}
	w.expect(run, "one\n", 0)
	w.expect(list, "run\n", 0)
	w.expect(w.a("cd pin && rm current && ln -s b current"), "", 0)
	refused(again(run))
	refused(again(list))
	w.expect(w.a("cd pin && rm current && ln -s a current"), "", 0)
	w.expect(again(list), "run\n", 0)
	w.expect(w.a("echo 'echo three' >pin/a/run"), "", 0)
	refused(again(run))
}

// places starts commands in a directory that must lead to one place. If a link now leads it elsewhere, the host starts
// nothing and reports the new place.
func places(w *world) {
	out, _ := w.start(w.a("mkdir -p place/a place/b && cd place && ln -s a current && echo one >a/name && pwd"))
	place := strings.TrimSpace(out)
	placed := func(command string) supervisor.Start {
		s := w.a(command)
		s.Cwd, s.Real, s.Handle = place+"/current", place+"/a", w.k.Handle()
		return s
	}
	if r := w.expect(placed("cat name"), "one\n", 0); r.Cwd != place+"/current" || r.Real != place+"/a" {
		w.Errorf("it ended in %q, which is %q; want %s/current and %s/a", r.Cwd, r.Real, place, place)
	}
	w.expect(w.a("cd place && rm current && ln -s b current"), "", 0)
	s := placed("touch here")
	var moved *supervisor.MovedError
	if r, err := w.k.Start(w.Context(), s, io.Discard); !errors.As(err, &moved) || moved.To != place+"/b" {
		w.Errorf("%+v, %v; want an error with the place %s/b", r, err, place)
	}
	if state, _, err := w.k.Reconcile(w.Context(), s.ID, s.Handle, false); state != supervisor.Absent || err != nil {
		w.Errorf("%s, %v; want %s", state, err, supervisor.Absent)
	}
}
