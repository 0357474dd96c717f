package supervisor_test

import (
	"crypto/rand"
	"errors"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/terminal/shell"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/sshd"
)

// TestLeasePathUnreadable tests a file that exists but that the system does not let the keeper open, like a pipe in a
// file's place. The command is refused and not started.
func TestLeasePathUnreadable(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const setLease = 1024 // F_SETLEASE
	if _, _, no := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), setLease, syscall.F_WRLCK); no != 0 {
		t.Skip("the file system has no leases: ", no)
	}
	k, err := supervisor.Open(t.Context(), sshd.Start(t, sshd.Options{}).Dial())
	if err != nil {
		t.Fatal(err)
	}
	k.Times.Open = 100 * time.Millisecond
	s := supervisor.Start{ID: rand.Text(), Command: "cat " + supervisor.Opened(0), Grammar: shell.Bash, Plain: true,
		Limit: await.Most, Handle: k.Handle(),
		Opens: supervisor.Opens{Within: []string{dir}, Paths: []supervisor.Path{{Name: f.Name(), Shown: "file"}}}}
	if r, err := k.Start(t.Context(), s, io.Discard); !errors.Is(err, supervisor.ErrSpecial) {
		t.Errorf("%+v, %v", r, err)
	}
	if state, _, err := k.Reconcile(t.Context(), s.ID, s.Handle, false); state != supervisor.Absent || err != nil {
		t.Errorf("%s, %v", state, err)
	}
}
