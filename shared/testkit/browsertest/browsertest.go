// Package browsertest runs scripts that drive a real Chromium through playwright-core.
package browsertest

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

// A Browser consists of Node, Chromium and the folder of playwright-core.
type Browser struct {
	t              *testing.T
	node, chromium string
	libs           string
}

// New finds the browser and its driver. The named modules must be installed in the folder of playwright-core.
func New(t *testing.T, modules ...string) *Browser {
	t.Helper()
	realpart.Chromium.Take(t)
	b := &Browser{t: t, node: Node(t), chromium: findChromium()}
	if b.chromium == "" {
		realpart.Chromium.Absent(t, "there is no Chromium, and CHROMIUM names none")
	}
	b.libs = Modules(t, append(modules, "playwright-core")...)
	opens(t)
	return b
}

// NewWithWindows is like [New] for a Chromium with windows, without which it shows no notification.
func NewWithWindows(t *testing.T, modules ...string) *Browser {
	t.Helper()
	b := New(t, modules...)
	if b.chromium = findProgram(os.Getenv("CHROMIUM"), "chromium", "chromium-browser",
		"google-chrome"); b.chromium == "" {
		realpart.Chromium.Absent(t, "there is only Chromium's headless shell, and this test needs its windows")
	}
	return b
}

// page is a script that opens a page and examines it.
const page = `import { createRequire } from 'node:module';
const { chromium } = createRequire(process.env.PLAYWRIGHT_DIR + '/x.js')('playwright-core');
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ['--no-sandbox', '--disable-gpu'] });
const page = await browser.newPage();
await page.goto('data:text/html,<p>there</p>');
const there = await page.locator('p').textContent();
await browser.close();
process.exit(there === 'there' ? 0 : 1);`

// opens opens a page in Chromium. If that fails, the test is skipped.
var opens = realpart.Chromium.Tried(func(t *realpart.Trial) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatalf("%v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), most)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, "--input-type=module", "--eval", page)
	cmd.Env = append(os.Environ(), "CHROMIUM="+findChromium())
	t.Run(cmd)
})

// runs runs a script in Node. If that fails, the test is skipped.
var runs = realpart.Node.Tried(func(t *realpart.Trial) { t.Run(exec.Command("node", "--eval", "process.exit(0)")) })

// Node returns the path of node.
func Node(t *testing.T) string {
	t.Helper()
	realpart.Node.Take(t)
	node, err := exec.LookPath("node")
	if err != nil {
		realpart.Node.Absent(t, err.Error())
	}
	runs(t)
	return node
}

// Modules returns the folder whose node_modules has the named modules.
func Modules(t *testing.T, names ...string) string {
	t.Helper()
	libs := os.Getenv("PLAYWRIGHT_DIR")
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(libs, "node_modules", name, "package.json")); libs == "" || err != nil {
			realpart.Chromium.Absent(t, name+" is not installed where PLAYWRIGHT_DIR says")
		}
	}
	return libs
}

// findChromium returns the path of Chromium. It prefers the headless shell, which has the same engine but no windows,
// and needs a third less CPU time.
func findChromium() string {
	return findProgram(os.Getenv("CHROMIUM"), "chromium-headless-shell", "chromium", "chromium-browser",
		"google-chrome")
}

// findProgram returns the path of the first of the programs that is installed, or "".
func findProgram(names ...string) string {
	for _, name := range names {
		if path, err := exec.LookPath(name); name != "" && err == nil {
			return path
		}
	}
	return ""
}

// most limits the time of a script on a busy machine. Waits for states of the page have limits of their own.
const most = 10 * time.Minute

// Run runs a script, and fails the test if the script fails. For each line "restart" that the script prints, Run
// calls restart and sends a line back; with nil, the test fails. The script's environment is the test's, plus the paths
// of the browser, url and env ("NAME=value").
func (b *Browser) Run(script, url string, restart func(), env ...string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), most)
	defer cancel()
	cmd := exec.CommandContext(ctx, b.node, script)
	cmd.Env = append(append(os.Environ(), "BASE_URL="+url, "CHROMIUM="+b.chromium, "PLAYWRIGHT_DIR="+b.libs), env...)
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
		if restart == nil {
			b.t.Fatal("the script asks for a restart, which this test does not have")
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
