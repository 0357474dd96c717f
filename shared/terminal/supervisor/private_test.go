package supervisor_test

import (
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/terminal/shell"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/sshd"
)

// TestPrivateFolders tests programs that could follow a link below a folder. They may search a folder only if no other
// user can put a link there, and if no list of ignored files is a link.
func TestPrivateFolders(t *testing.T) {
	t.Parallel()
	k, err := supervisor.Open(t.Context(), sshd.Start(t, sshd.Options{}).Dial())
	if err != nil {
		t.Fatal(err)
	}
	for lines, want := range map[string]error{
		"true":                              nil,
		"chmod 644 a/b/f; ln -s /etc a/etc": nil,
		"mkdir -p .git/info; touch .git/info/exclude .gitignore": nil,
		"chmod o+w a/b":                                supervisor.ErrShared,
		"chmod 1777 a":                                 supervisor.ErrShared,
		"chmod o+w .":                                  supervisor.ErrShared,
		"chown 65534 a/b":                              supervisor.ErrShared,
		"chgrp 65534 a/b; chmod g+w a/b":               supervisor.ErrShared,
		"ln -s /etc/passwd a/.gitignore":               supervisor.ErrShared,
		"mkfifo a/b/.ignore":                           supervisor.ErrShared,
		"ln -s /etc/passwd .rgignore":                  supervisor.ErrShared,
		"echo gitdir: /srv > a/.git":                   supervisor.ErrShared,
		"ln -s /srv a/.git":                            supervisor.ErrShared,
		"mkdir .git; ln -s /srv .git/info":             supervisor.ErrShared,
		"mkdir -p .git/info; mkfifo .git/info/exclude": supervisor.ErrShared,
	} {
		dir := t.TempDir()
		// #nosec G204 -- the test's own lines
		made := exec.Command("sh", "-ec", "mkdir -p a/b; echo one >a/b/f; "+lines)
		made.Dir = dir
		if out, err := made.CombinedOutput(); err != nil {
			if strings.HasPrefix(lines, "ch") && os.Getuid() != 0 {
				continue // only root gives files away
			}
			t.Fatalf("%s: %v: %s", lines, err, out)
		}
		var out strings.Builder
		command := "cat " + supervisor.Opened(0) + "/a/b/f"
		_, err := k.Start(t.Context(), supervisor.Start{ID: rand.Text(), Command: command, Grammar: shell.Bash,
			Plain: true, Limit: await.Most, Opens: supervisor.Opens{Within: []string{dir}, Private: true,
				Paths: []supervisor.Path{{Name: dir, Shown: "."}}}}, &out)
		if !errors.Is(err, want) || want == nil && (err != nil || !strings.Contains(out.String(), "one")) {
			t.Errorf("%s: %v, %q; want %v", lines, err, out.String(), want)
		}
	}
}
