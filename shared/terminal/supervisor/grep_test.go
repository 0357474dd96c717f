package supervisor_test

import (
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/countersign-run/countersign/shared/terminal/shell"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/sshd"
)

// TestGrepNotGNU tests a host without GNU grep. Below a folder, its grep may follow a link that was put in a folder's
// place, so the keeper does not search folders there.
func TestGrepNotGNU(t *testing.T) {
	t.Parallel()
	bin, dir := t.TempDir(), t.TempDir()
	env := "#!/bin/sh\nfor a; do\ncase $a in PATH=*) a=PATH=" + sshd.Quote(sshd.Busybox(t)) +
		" ;; esac\nset -- \"$@\" \"$a\"\nshift\ndone\nexec /usr/bin/env \"$@\"\n"
	if err := os.WriteFile(filepath.Join(bin, "env"), []byte(env), 0o700); err != nil {
		t.Fatal(err)
	}
	host := sshd.Start(t, sshd.Options{Path: bin + ":" + os.Getenv("PATH")})
	k, err := supervisor.Open(t.Context(), host.Dial())
	if err != nil {
		t.Fatal(err)
	}
	s := supervisor.Start{ID: rand.Text(), Command: "grep -r x " + supervisor.Opened(0),
		Grammar: shell.POSIX, Plain: true,
		Limit: await.Most, Opens: supervisor.Opens{Within: []string{dir}, Walks: true,
			Paths: []supervisor.Path{{Name: dir, Shown: dir}}}}
	if r, err := k.Start(t.Context(), s, io.Discard); !errors.Is(err, supervisor.ErrWalk) {
		t.Errorf("%+v, %v", r, err)
	}
}
