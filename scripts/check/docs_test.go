package check_test

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/browsertest"
	"github.com/countersign-run/countersign/shared/testkit/chatclients"
)

// TestDocs reads the description of the API in Chromium, and tries a request there (testdata/docs.mjs).
func TestDocs(t *testing.T) {
	t.Parallel()
	browser := browsertest.New(t, "axe-core")
	server := newDevServer(t)
	server.start()
	browser.Run("testdata/docs.mjs", server.url, func() { t.Error("nobody asks for a restart here") })
}

// TestDescribedTypes has openapi-typescript make types of the description, and code that uses them compiled, and our
// client's types with it.
func TestDescribedTypes(t *testing.T) {
	node, modules, dir := browsertest.Node(t), chatclients.Modules(t), t.TempDir()
	runs := func(script string, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), node, append([]string{filepath.Join(modules, script)}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	runs("openapi-typescript/bin/cli.js", "../../shared/web/openapi.json", "-o", filepath.Join(dir, "countersign.d.ts"))
	for _, file := range []string{"testdata/described.ts", "../../shared/widget/site/client.d.ts"} {
		write(t, filepath.Join(dir, filepath.Base(file)), read(t, file))
	}
	runs("typescript/bin/tsc", "--strict", "--noEmit", "--target", "es2022", "--module", "esnext",
		"--moduleResolution", "bundler", "--lib", "es2022,dom", filepath.Join(dir, "described.ts"))
}
