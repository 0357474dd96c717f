package keeper_test

import (
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/keeper"
	"github.com/countersign-run/countersign/shared/shell"
	"github.com/countersign-run/countersign/shared/testkit/sshd"
)

// TestAnotherGrep has a host whose grep is not GNU's: below a folder it may follow a link that somebody puts in a
// folder's place, so that it does not search one.
func TestAnotherGrep(t *testing.T) {
	t.Parallel()
	bin, dir := t.TempDir(), t.TempDir()
	env := "#!/bin/sh\nfor a; do\ncase $a in PATH=*) a=PATH=" + sshd.Quote(sshd.Busybox(t)) +
		" ;; esac\nset -- \"$@\" \"$a\"\nshift\ndone\nexec /usr/bin/env \"$@\"\n"
	if err := os.WriteFile(filepath.Join(bin, "env"), []byte(env), 0o700); err != nil {
		t.Fatal(err)
	}
	host := sshd.Start(t, sshd.Options{Path: bin + ":" + os.Getenv("PATH")})
	k, err := keeper.Open(t.Context(), host.Dial())
	if err != nil {
		t.Fatal(err)
	}
	s := keeper.Start{ID: rand.Text(), Command: "grep -r x " + keeper.Opened(0), Grammar: shell.POSIX, Plain: true,
		Limit: time.Minute, Opens: keeper.Opens{Within: []string{dir}, Walks: true,
			Paths: []keeper.Path{{Name: dir, Shown: dir}}}}
	if r, err := k.Start(t.Context(), s, io.Discard); !errors.Is(err, keeper.ErrWalk) {
		t.Errorf("%+v, %v", r, err)
	}
}
