package widget_test

import (
	"context"
	"io/fs"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/testkit/browsertest"
	"github.com/countersign-run/countersign/shared/testkit/leaktest"
	"github.com/countersign-run/countersign/shared/widget"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// TestWidget uses the chat in Chromium on a page of another origin, under a strict policy (testdata/widget.mjs). If
// SCREENSHOT_DIR is set, screenshots are written there.
func TestWidget(t *testing.T) {
	browser := browsertest.New(t, "axe-core")
	server := newServer(t)
	browser.Run("testdata/widget.mjs", server.url, func() { t.Error("there is nothing to restart") })
	server.Lock()
	defer server.Unlock()
	for _, p := range server.problems {
		t.Error(p)
	}
}

// TestSize checks the bytes that a page loads: each module with its imports is smaller than 40 KB.
func TestSize(t *testing.T) {
	const most = 40 * 1024
	for _, name := range []string{"gemini-chat.js", "automation.js"} {
		size := 0
		for _, part := range loaded(t, name, map[string]bool{}) {
			size += part
		}
		t.Logf("%s: %d bytes", name, size)
		if size >= most {
			t.Errorf("%s and what it imports have %d bytes, want fewer than %d", name, size, most)
		}
	}
}

var imported = regexp.MustCompile(`(?m)^(?:import|export) [^;]*?from '\./([^']+)'`)

// loaded returns the sizes of a module and of those that it imports.
func loaded(t *testing.T, name string, seen map[string]bool) []int {
	t.Helper()
	if seen[name] {
		return nil
	}
	seen[name] = true
	source, err := fs.ReadFile(widget.Files(), name)
	if err != nil {
		t.Fatal(err)
	}
	sizes := []int{len(source)}
	for _, m := range imported.FindAllSubmatch(source, -1) {
		sizes = append(sizes, loaded(t, string(m[1]), seen)...)
	}
	return sizes
}

// TestTypes checks the types in the modules' comments with TypeScript.
func TestTypes(t *testing.T) {
	compiler := filepath.Join(browsertest.Modules(t, "typescript"), "node_modules", "typescript", "bin", "tsc")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, browsertest.Node(t), compiler, "--project",
		".").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
