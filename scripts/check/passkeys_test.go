package check_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/browsertest"
)

// TestPasskeys adds passkeys and decides with them in Chromium, whose virtual authenticators stand for a device and a
// security key (testdata/passkeys.mjs). The console is at localhost, because browsers bind no passkey to an IP address.
func TestPasskeys(t *testing.T) {
	t.Parallel()
	browser, server := browsertest.New(t, "axe-core"), newDevServer(t)
	rules := filepath.Join(t.TempDir(), "strong.yaml")
	if err := os.WriteFile(rules, []byte("alwaysAllow: true\ncalls: [{tool: gmail_send}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	server.env = []string{"STRONG_APPROVAL=" + rules}
	server.start()
	url := strings.Replace(server.url, "127.0.0.1", "localhost", 1)
	var codes []string
	for _, user := range []string{"vera", "walt"} {
		cmd := exec.Command("go", "run", "../ops", "passkey", "code", user)
		cmd.Env = append(os.Environ(), "DATA_DIR="+server.data, "STRONG_APPROVAL="+rules, "CONSOLE_URL="+url)
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("a code for %s: %v", user, err)
		}
		codes = append(codes, strings.TrimSpace(string(out)))
	}
	browser.Run("testdata/passkeys.mjs", url, nil, "VERA="+codes[0], "WALT="+codes[1])
}
