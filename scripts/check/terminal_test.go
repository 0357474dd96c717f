package check_test

import (
	"strconv"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/countersign-run/countersign/shared/testkit/browsertest"
	"github.com/countersign-run/countersign/shared/testkit/sshd"
)

// TestTerminalView uses the view of terminals in Chromium (testdata/terminal.mjs), with an API whose answers the script
// sets.
func TestTerminalView(t *testing.T) {
	t.Parallel()
	browser := browsertest.New(t, "axe-core")
	browser.Run("testdata/terminal.mjs", newFakeAPI(t).URL, nil)
}

// TestTerminal uses terminals in Chromium as a new user, on the demo host (testdata/demohost.mjs), and kills the server
// with -9 while a command waits.
func TestTerminal(t *testing.T) {
	inBrowser(t, "demohost.mjs")
}

// TestTerminalOnSSHD uses a user's own host in Chromium (testdata/sshd.mjs), on OpenSSH's server, and kills the local
// server with -9 while a shell is open.
func TestTerminalOnSSHD(t *testing.T) {
	t.Parallel()
	browser := browsertest.New(t, "axe-core")
	host := sshd.Start(t, sshd.Options{HostKeys: []string{"ed25519"}})
	server := newDevServer(t)
	server.env = []string{"TERMINAL_HOSTS=" + host.Addr}
	server.start()
	browser.Run("testdata/sshd.mjs", server.url, func() {
		server.kill()
		server.start()
	}, "SSHD_PORT="+strconv.Itoa(host.Port), "SSHD_USER="+host.User, "SSHD_KEY="+host.KeyFile(),
		"SSHD_HOME="+host.Home, "SSHD_PRINT="+ssh.FingerprintSHA256(host.HostKeys()[0]))
}
