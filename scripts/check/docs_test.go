package check_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/browsertest"
	"github.com/countersign-run/countersign/shared/testkit/chatclients"
)

// TestDocs opens the API description in Chromium, and tries a request there (testdata/docs.mjs).
func TestDocs(t *testing.T) {
	inBrowser(t, "docs.mjs")
}

// TestDocsComponent compiles the code that the API's page shows for useChat and for AG-UI.
func TestDocsComponent(t *testing.T) {
	node, modules, dir := browsertest.Node(t), chatclients.Modules(t), t.TempDir()
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "chat.tsx"), shown(t, "## The AI SDK"))
	write(t, filepath.Join(dir, "agui.ts"), shown(t, "## AG-UI")+"\ndeclare function token(): string;\n")
	cmd := exec.CommandContext(t.Context(), node, filepath.Join(modules, "typescript/bin/tsc"), "--strict", "--noEmit",
		"--target", "es2022", "--module", "esnext", "--moduleResolution", "bundler", "--lib", "es2022,dom,dom.iterable",
		"--jsx", "react-jsx", "--skipLibCheck", filepath.Join(dir, "chat.tsx"), filepath.Join(dir, "agui.ts"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

// TestDocsComponentRuns runs the component that the API's page shows for useChat in Chromium, on a page of another
// origin. Only the server's address is changed (testdata/usechat.mjs).
func TestDocsComponentRuns(t *testing.T) {
	t.Parallel()
	browser := browsertest.New(t, "axe-core")
	server := newDevServer(t)
	dir, site := t.TempDir(), t.TempDir()
	write(t, filepath.Join(dir, "chat.tsx"), strings.ReplaceAll(shown(t, "## The AI SDK"),
		"https://agent.example.com", server.url))
	write(t, filepath.Join(dir, "page.tsx"), `import { createRoot } from 'react-dom/client';
		import { Chat } from './chat';
		createRoot(document.querySelector('main')!).render(<Chat token={() => location.hash.slice(1)} />);`)
	chatclients.Bundle(t, filepath.Join(dir, "page.tsx"), filepath.Join(site, "page.js"))
	write(t, filepath.Join(site, "index.html"), `<!doctype html><html lang="en"><title>A chat</title>`+
		`<link rel="icon" href="data:,"><h1>A chat</h1><main></main><script type="module" src="page.js"></script></html>`)
	page := httptest.NewServer(http.FileServer(http.Dir(site)))
	t.Cleanup(page.Close)
	server.env = []string{"ALLOWED_ORIGINS=" + page.URL}
	server.start()
	browser.Run("testdata/usechat.mjs", page.URL, nil, "API_URL="+server.url)
}

// shown returns the first code of a section of the API's page.
func shown(t *testing.T, heading string) string {
	t.Helper()
	_, section, found := strings.Cut(read(t, "../../shared/api/README.md"), heading)
	if !found {
		t.Fatalf("the page has no section %q", heading)
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
	return code.String()
}

// TestDescribedTypes generates types from the description with openapi-typescript. It compiles code that uses them,
// together with our client's types.
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
