package widget_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"io/fs"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/browsertest"
	"github.com/countersign-run/countersign/shared/testkit/leaktest"
	"github.com/countersign-run/countersign/shared/web/widget"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// TestWidget uses the chat in Chromium on a page of another origin, under a strict policy (testdata/widget.mjs). It
// writes screenshots to SCREENSHOT_DIR if that is set.
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

// TestSize checks how many files a page loads for each importable module, and their total size in gzip.
func TestSize(t *testing.T) {
	// 300 bytes and a file (clock.js) of two of them say the times in an error in the reader's language and zone; 40
	// bytes of client.js upload a file, and 40 carry the passkey and the link of an error; 600 bytes of gemini-chat.js
	// offer files, whose module is loaded with the first
	for name, most := range map[string]int{"gemini-chat.js": 18_000, "automation.js": 11_000, "client.js": 5_440} {
		sizes := map[string]int{}
		load(t, name, sizes)
		size := 0
		for _, part := range sizes {
			size += part
		}
		t.Logf("%s: %d files, %d bytes", name, len(sizes), size)
		if size > most || len(sizes) > 4 {
			t.Errorf("%s and what it imports are %d files of %d bytes, want at most 4 of %d", name, len(sizes), size,
				most)
		}
	}
}

var imported = regexp.MustCompile(`(?m)^(?:import|export) [^;]*?from "\./([^"]+)"`)

// load adds the sizes of a module and its imports.
func load(t *testing.T, name string, sizes map[string]int) {
	t.Helper()
	source, err := fs.ReadFile(widget.Files(), name)
	if err != nil {
		t.Fatal(err)
	}
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write(source); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	sizes[name] = packed.Len()
	for _, m := range imported.FindAllSubmatch(source, -1) {
		if sizes[string(m[1])] == 0 {
			load(t, string(m[1]), sizes)
		}
	}
}

// TestTypes checks the types in the modules' comments with TypeScript.
func TestTypes(t *testing.T) {
	compiler := filepath.Join(browsertest.Modules(t, "typescript"), "node_modules", "typescript", "bin", "tsc")
	ctx, cancel := context.WithTimeout(t.Context(), await.Most)
	defer cancel()
	if out, err := exec.CommandContext(ctx, browsertest.Node(t), compiler, "--project",
		".").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}
