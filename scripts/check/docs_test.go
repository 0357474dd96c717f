package check_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
	browser.Run("testdata/docs.mjs", server.url, nil)
}

// TestDocsComponent has the component that the API's page shows for useChat compiled.
func TestDocsComponent(t *testing.T) {
	node, modules, dir := browsertest.Node(t), chatclients.Modules(t), t.TempDir()
	_, section, found := strings.Cut(read(t, "../../shared/api/README.md"), "## The AI SDK")
	if !found {
		t.Fatal("the page has no such section")
	}
	var code strings.Builder
	for line := range strings.Lines(section) {
		inside, ok := strings.CutPrefix(line, "    ")
		if ok || code.Len() > 0 && strings.TrimSpace(line) == "" {
			code.WriteString(inside)
		} else if code.Len() > 0 {
			break
		}
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "chat.tsx"), code.String())
	cmd := exec.CommandContext(t.Context(), node, filepath.Join(modules, "typescript/bin/tsc"), "--strict", "--noEmit",
		"--target", "es2022", "--module", "esnext", "--moduleResolution", "bundler", "--lib", "es2022,dom,dom.iterable",
		"--jsx", "react-jsx", "--skipLibCheck", filepath.Join(dir, "chat.tsx"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s\n%s", err, out, code.String())
	}
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
	for _, file := range []string{"testdata/described.ts", "../../shared/web/widget/site/client.d.ts"} {
		write(t, filepath.Join(dir, filepath.Base(file)), read(t, file))
	}
	runs("typescript/bin/tsc", "--strict", "--noEmit", "--target", "es2022", "--module", "esnext",
		"--moduleResolution", "bundler", "--lib", "es2022,dom", filepath.Join(dir, "described.ts"))
}
