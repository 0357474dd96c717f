// Package check_test holds the checks that use Countersign from outside, as its users do: the built programs, over HTTP,
// in a browser.
package check_test

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// TestConsole uses the console in Chromium (testdata/console.mjs), kills the server with -9 while an approval waits, and
// looks at the mailbox in the end: everything that was approved was sent, and once. SCREENSHOT_DIR, when set, gets the
// pictures.
func TestConsole(t *testing.T) {
	browser := newBrowser(t)
	server := newDevServer(t)
	server.start()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	browser.run(ctx, "testdata/console.mjs", server.url, func() {
		server.kill()
		server.start()
	})
	want := map[string]int{
		"ana@example.com: The demo is at ten": 1, "bob@example.com: Demo, moved": 1, "eve@example.org: This survives": 1,
		"kim@example.org: Lunch is ready": 1, "kim@example.org: Dinner is ready": 1, "lou@example.org: The line is bad": 1,
		"page11@example.org: This is number 11": 1, "kay@example.org: Keys are enough": 1,
	}
	got := server.mailbox()
	if len(got) != len(want) {
		t.Errorf("the mailbox holds %v", got)
	}
	for mail, times := range want {
		if got[mail] != times {
			t.Errorf("%q was sent %d times, want %d", mail, got[mail], times)
		}
	}
}

// TestSignInByRedirect has the console's user sign in at the local issuer by a real redirect (testdata/redirect.mjs).
func TestSignInByRedirect(t *testing.T) {
	browser := newBrowser(t)
	server := newDevServer(t)
	server.env = []string{"WEB_CLIENT_ID=countersign-dev"}
	server.start()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	browser.run(ctx, "testdata/redirect.mjs", server.url, func() { t.Error("nobody asks for a restart here") })
	if got := server.mailbox(); len(got) != 1 || got["ana@example.com: This waits"] != 1 {
		t.Errorf("the mailbox holds %v", got)
	}
}

// absent skips the test for want of a real part, or fails it where all parts are required.
func absent(t *testing.T, part string) {
	t.Helper()
	if os.Getenv("REQUIRE_ALL") == "1" {
		t.Fatalf("%s is absent, and REQUIRE_ALL is set", part)
	}
	t.Skipf("%s is absent", part)
}

// browser runs scripts that drive Chromium through playwright-core.
type browser struct {
	t                    *testing.T
	node, chromium, libs string
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	b := &browser{t: t, libs: os.Getenv("PLAYWRIGHT_DIR")}
	var err error
	if b.node, err = exec.LookPath("node"); err != nil {
		absent(t, "node")
	}
	if b.chromium = findChromium(); b.chromium == "" {
		absent(t, "Chromium (CHROMIUM names another)")
	}
	for _, lib := range []string{"playwright-core", "axe-core"} {
		if _, err := os.Stat(filepath.Join(b.libs, "node_modules", lib, "package.json")); b.libs == "" || err != nil {
			absent(t, lib+" (PLAYWRIGHT_DIR names where it is installed)")
		}
	}
	return b
}

func findChromium() string {
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path
		}
	}
	return ""
}

// run passes when the script does. For each line "restart" that it says, restart is called and a line is sent back.
func (b *browser) run(ctx context.Context, script, url string, restart func()) {
	b.t.Helper()
	cmd := exec.CommandContext(ctx, b.node, script)
	cmd.Env = append(os.Environ(), "BASE_URL="+url, "CHROMIUM="+b.chromium, "PLAYWRIGHT_DIR="+b.libs)
	cmd.WaitDelay = 5 * time.Second
	in, err := cmd.StdinPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if lines.Text() != "restart" {
			b.t.Log(lines.Text())
			continue
		}
		restart()
		if _, err := io.WriteString(in, "up\n"); err != nil {
			b.t.Errorf("the script is gone: %v", err)
		}
	}
	if err := cmd.Wait(); err != nil {
		b.t.Fatalf("%s: %v", script, err)
	}
}
