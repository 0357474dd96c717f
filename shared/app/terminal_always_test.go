package app_test

import (
	"errors"
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

// An always-allow covers one directory, and the program that the user meant: a program that an earlier command has put
// into the search path does not replace it, and a changed file needs approval.
func TestAnAllowedCommandStaysTheSame(t *testing.T) {
	h := onTerminal(t, nil)
	evil := filepath.Join(h.srv.Home, "evil")
	if err := errors.Join(os.Mkdir(evil, 0o755), os.Mkdir(filepath.Join(h.srv.Home, "b"), 0o755),
		os.WriteFile(filepath.Join(evil, "touch"), []byte("#!/bin/sh\necho evil >>\""+h.srv.Home+"/stolen\"\n"),
			0o755)); err != nil {
		t.Fatal(err)
	}
	do := func(line, decision string) (asked bool) {
		t.Helper()
		h.SetModel((&commands{lines: []string{line}}).turn)
		got := h.askOn("Do it.")
		if len(got.Approvals) == 0 {
			return false
		}
		if a := h.resolve(got.Approvals[0], decision, nil); a.HTTP != http.StatusOK {
			t.Fatalf("%s: %d %s", line, a.HTTP, a.Body)
		}
		h.run(got)
		return true
	}
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
		t.Fatalf("%v %+v", err, host.Programs)
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
