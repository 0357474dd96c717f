package app_test

import (
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/terminal/shell"
)

// TestTerminalAlwaysAllowDirectorySwapped swaps the directory of an always-allowed command for another one, by a link
// on the way to it or in its place. The command needs approval then.
func TestTerminalAlwaysAllowDirectorySwapped(t *testing.T) {
	for name, c := range map[string]struct{ enter, swap string }{
		"the link is another": {"ln -s b current; cd current", "rm ~/current; ln -s c ~/current"},
		"a link on the way":   {"ln -s b current; mkdir b/x c/x; cd current/x", "rm ~/current; ln -s c ~/current"},
		"a link in its place": {"cd b", "mv ~/b ~/moved; ln -s c ~/b"},
	} {
		t.Run(name, func(t *testing.T) {
			h := onTerminal(t, nil)
			if err := errors.Join(os.Mkdir(filepath.Join(h.srv.Home, "b"), 0o755),
				os.Mkdir(filepath.Join(h.srv.Home, "c"), 0o755)); err != nil {
				t.Fatal(err)
			}
			h.does(c.enter, "approve_once")
			h.does("touch witness", "approve_and_always_allow_command")
			if h.does("touch witness", "reject") {
				t.Error("what is always allowed is asked about")
			}
			h.does(c.swap, "approve_once")
			if !h.does("touch witness", "reject") {
				t.Error("it runs unasked in another directory")
			}
			for _, dir := range []string{"c", "c/x"} {
				if _, err := os.Stat(filepath.Join(h.srv.Home, dir, "witness")); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("it has changed %s: %v", dir, err)
				}
			}
		})
	}
}

// does makes the model run a line, decides the card, if there is one, and reports whether there was one.
func (h *onHost) does(line, decision string) (asked bool) {
	h.t.Helper()
	h.SetModel((&commands{lines: []string{line}}).turn)
	got := h.askOn("Do it.")
	if len(got.Approvals) == 0 {
		return false
	}
	if a := h.resolve(got.Approvals[0], decision, nil); a.HTTP != http.StatusOK {
		h.t.Fatalf("%s: %d %s; want a.HTTP %v", line, a.HTTP, a.Body, http.StatusOK)
	}
	h.run(got)
	return true
}

// An always-allow covers one directory, and the program that the user meant: a program that an earlier command has put
// into the search path does not replace it, and a changed file needs approval.
func TestTerminalAlwaysAllowDirectoryAndProgram(t *testing.T) {
	h := onTerminal(t, nil)
	evil := filepath.Join(h.srv.Home, "evil")
	if err := errors.Join(os.Mkdir(evil, 0o755), os.Mkdir(filepath.Join(h.srv.Home, "b"), 0o755),
		os.WriteFile(filepath.Join(evil, "touch"), []byte("#!/bin/sh\necho evil >>\""+h.srv.Home+"/stolen\"\n"),
			0o755)); err != nil {
		t.Fatal(err)
	}
	do := h.does
	const always, once, no = "approve_and_always_allow_command", "approve_once", "reject"
	do("touch witness", always)
	do("export PATH="+shell.Quote([]string{evil})+":$PATH", once)
	if do("touch witness", no) {
		t.Error("what is always allowed is asked about")
	}
	if _, err := os.Stat(filepath.Join(h.srv.Home, "stolen")); err == nil {
		t.Error("a program of the search path that an earlier command set has run unasked")
	}
	do("cd b", once)
	if !do("touch witness", no) {
		t.Error("it runs unasked in another directory")
	}
	do("cd ..", once)
	if do("touch witness", no) {
		t.Error("it is asked about again where it is always allowed")
	}
	var host terminal.Host
	path := document.HostPath("ana", h.host)
	d, err := document.Read(t.Context(), h.App.Store, path)
	if err = errors.Join(err, document.Decode(d, &host)); err != nil || len(host.Programs) != 1 ||
		!strings.Contains(host.Programs[0].File, "/touch\n") {
		t.Fatalf("%v %+v; want len(host.Programs) 1, host.Programs[0].File with %q", err, host.Programs, "/touch\n")
	}
	host.Programs[0].File = strings.Replace(host.Programs[0].File, "\n", "\n0", 1)
	data, err := strictjson.Marshal(host)
	if err == nil {
		_, err = h.App.Store.Commit(t.Context(), store.Update(path, d.Version, nil, data))
	}
	if err != nil {
		t.Fatal(err)
	}
	if !do("touch witness", always) || do("touch witness", no) {
		t.Error("a program that is another file runs unasked, or its user cannot allow it anew")
	}
}

// TestTerminalApprovedDirectorySwapped swaps the directory of a command between its card and its approval. Nothing runs
// then, and a new card names the directory to which the path leads now.
func TestTerminalApprovedDirectorySwapped(t *testing.T) {
	for name, c := range map[string]struct {
		enter string
		list  bool
		swap  func(home string) error
	}{
		"the link is another": {"ln -s b current; cd current", false, func(home string) error {
			return errors.Join(os.Remove(home+"/current"), os.Symlink("c", home+"/current"))
		}},
		"a link in its place": {"cd b", false, func(home string) error {
			return errors.Join(os.Rename(home+"/b", home+"/moved"), os.Symlink("c", home+"/b"))
		}},
		"a list": {"ln -s b current; cd current", true, func(home string) error {
			return errors.Join(os.Remove(home+"/current"), os.Symlink("c", home+"/current"))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h := onTerminal(t, nil)
			home := h.srv.Home
			if err := errors.Join(os.Mkdir(home+"/b", 0o755), os.Mkdir(home+"/c", 0o755)); err != nil {
				t.Fatal(err)
			}
			h.does(c.enter, "approve_once")
			h.SetModel((&commands{lines: []string{"touch witness"}}).turn)
			if c.list {
				h.proposesList("touch witness", "touch second")
			}
			got := h.askOn("Do it.")
			if err := c.swap(home); err != nil {
				t.Fatal(err)
			}
			h.resolve(got.Approvals[0], "approve_once", nil)
			again := h.run(got)
			if len(again.Approvals) != 1 {
				t.Fatalf("%d cards after the directory was swapped; want 1: %s", len(again.Approvals), again.Body)
			}
			for _, dir := range []string{"b", "c", "moved"} {
				if _, err := os.Stat(filepath.Join(home, dir, "witness")); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("%s/witness: %v; want no file before the new card is approved", dir, err)
				}
			}
			h.shows(again, "which leads to "+home+"/c", "If its directory leads to another place by then, nothing runs")
			yes := h.resolve(again.Approvals[0], "approve_once", nil)
			ended := h.run(got)
			if _, err := os.Stat(filepath.Join(home, "c", "witness")); err != nil {
				t.Errorf("c/witness after the new card was approved: %v; want a file: %d %s, then %s", err, yes.HTTP,
					yes.Body, ended.Body)
			}
		})
	}
}
