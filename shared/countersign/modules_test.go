package countersign_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestHelloModules makes the hello program a module of its own, against this checkout, and checks its dependencies: no
// client of Firestore or Pub/Sub, no SQLite and no MCP. go mod tidy also reads the modules of dependencies' tests. If
// those are neither in the cache nor on a proxy, the test checks only the modules of the linked packages.
func TestHelloModules(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	hello, err := os.ReadFile(filepath.Join(root, "scripts/cookbook/hello/main.go"))
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	var program []string // without the script, which is the cookbook's
	for line := range strings.Lines(string(hello)) {
		if !strings.Contains(line, "/scripts/cookbook/offline") {
			program = append(program, line)
		}
	}
	mod := fmt.Sprintf("module example.com/hello\n\ngo 1.26.0\n\nrequire %[1]s v0.0.0\n\nreplace %[1]s => %s\n",
		strings.TrimSuffix(module, "/"), root)
	dir := t.TempDir()
	for name, text := range map[string]string{"main.go": strings.Join(program, ""), "go.mod": mod,
		"go.sum": string(sums)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := func(args ...string) (string, error) {
		cmd := exec.Command("go", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := run("mod", "tidy"); err != nil {
		t.Logf("go mod tidy cannot be had here, so go.mod is not looked at: %v\n%s", err, out)
	} else if tidied, err := os.ReadFile(filepath.Join(dir, "go.mod")); err != nil {
		t.Fatal(err)
	} else {
		free(t, "go.mod", string(tidied))
	}
	linked, err := run("list", "-deps", "-f", "{{with .Module}}{{.Path}}{{end}} {{.ImportPath}}", ".")
	if err != nil || !strings.Contains(linked, "google.golang.org/genai") {
		t.Fatalf("%v\n%s", err, linked)
	}
	free(t, "what is linked", linked)
}

// free fails where a text names one of the backends.
func free(t *testing.T, what, text string) {
	t.Helper()
	for _, backend := range []string{"firestore", "pubsub", "sqlite", "mcp", "modelcontextprotocol",
		"functions-framework", "testkit"} {
		if strings.Contains(strings.ToLower(text), backend) {
			t.Errorf("%s has %s:\n%s", what, backend, text)
		}
	}
}
