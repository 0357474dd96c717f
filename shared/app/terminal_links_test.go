package app_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/sshd"
)

// flips is a host on which someone changes a folder as soon as the host has reported where a path leads: its readlink
// answers correctly, and then runs a line. Each line runs once, in turn.
func flips(t *testing.T, lines ...string) sshd.Options {
	t.Helper()
	dir := t.TempDir()
	stub := "#!/bin/sh\nPATH=" + sshd.Quote(os.Getenv("PATH")) + "\nreadlink \"$@\"\ncode=$?\ncd " + sshd.Quote(dir) +
		"\nfor f in turn-*; do [ -e \"$f\" ] || break; mv \"$f\" now && . ./now; break; done\nexit $code\n"
	err := os.WriteFile(filepath.Join(dir, "readlink"), []byte(stub), 0o700)
	for i, line := range lines {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, "turn-"+string(rune('a'+i))), []byte(line+"\n"), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	return sshd.Options{Path: dir + ":" + os.Getenv("PATH")}
}

// Someone who can write to a readable folder cannot make a command read another file by changing a link or a file
// between the check and the read, at any moment. The host reports in turn where each link leads, where the folder
// leads, and for each path where it and its descriptor lead.
func TestTerminalPathSwapped(t *testing.T) {
	const link, file, pipe, folder = "ln -sfn OUT/file IN/link", "ln -sfn OUT/file IN/file",
		"rm IN/file; mkfifo IN/file", "mv IN/sub IN/was; ln -s OUT IN/sub"
	const other = "ln -sfn OUT/file IN/sub/file"
	for name, c := range map[string]struct {
		command string
		flips   []string // changes after each answer
		want    string   // what the model reads; empty if approval is needed
	}{
		"a link, before it is followed":      {"cat IN/link", []string{link}, ""},
		"a link, after it was followed":      {"cat IN/link", []string{":", ":", ":", link}, "fine"},
		"a file, before it is opened":        {"cat IN/file", []string{":", file}, ""},
		"a file, after it was opened":        {"cat IN/file", []string{":", ":", file}, "fine"},
		"a file that becomes a pipe":         {"cat IN/file", []string{":", pipe}, ""},
		"an opened file that becomes a pipe": {"cat IN/file", []string{":", ":", pipe}, "fine"},
		"a folder above, before the opening": {"head IN/sub/file", []string{":", folder}, ""},
		"a folder above, after the opening":  {"wc -c IN/sub/file", []string{":", ":", folder}, "4 IN/sub/file"},
		"a folder that is searched":          {"grep -r . IN/sub", []string{":", ":", folder}, "IN/sub/file:fine"},
		"the second of two":                  {"cat IN/file IN/link", []string{":", ":", ":", ":", other}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			logs, out := t.TempDir(), t.TempDir()
			in := strings.NewReplacer("IN", logs, "OUT", out).Replace
			err := errors.Join(os.WriteFile(filepath.Join(out, "file"), []byte("CANARY"), 0o600),
				os.WriteFile(filepath.Join(logs, "file"), []byte("fine"), 0o600),
				os.Mkdir(filepath.Join(logs, "sub"), 0o700),
				os.WriteFile(filepath.Join(logs, "sub/file"), []byte("fine"), 0o600),
				os.Symlink("sub/file", filepath.Join(logs, "link")))
			if err != nil {
				t.Fatal(err)
			}
			for i, line := range c.flips {
				c.flips[i] = in(line)
			}
			h := onTerminalOf(t, flips(t, c.flips...),
				map[string]any{"autoRun": "read_only", "readPaths": []string{logs}})
			m := &commands{lines: []string{in(c.command)}}
			h.SetModel(m.turn)
			asked := h.askOn("Look.")
			read := strings.Join(m.responses, "")
			if want := in(c.want); strings.Contains(read, "CANARY") || (want == "") != (len(asked.Approvals) == 1) ||
				want == "" && read != "" || !strings.Contains(read, want) {
				t.Errorf("%d cards, and the model reads %q; want %q", len(asked.Approvals), read, want)
			}
		})
	}
}
