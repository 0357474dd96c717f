package examples_test

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/scripts/dev/examples"
	"github.com/countersign-run/countersign/shared/testkit/chatclients"
	"github.com/countersign-run/countersign/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

var update = flag.Bool("update", false, "rebuild the libraries of the page with useChat")

func TestPagesPolicy(t *testing.T) {
	for path, kind := range map[string]string{"/examples": "text/html", "/examples/fetch": "text/html",
		"/examples/widget": "text/html", "/examples/usechat": "text/html", "/examples/agui": "text/html",
		"/examples/usechat.js":           "text/javascript",
		"/examples/usechat/libraries.js": "text/javascript", "/examples/usechat/LICENSES.txt": "text/plain"} {
		w := httptest.NewRecorder()
		examples.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		csp := w.Header().Get("Content-Security-Policy")
		if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), kind+";") ||
			strings.Contains(csp, "unsafe") || !strings.Contains(csp, "frame-ancestors 'self'") {
			t.Errorf("%s: %d, %v", path, w.Code, w.Header())
		}
	}
}

// TestLibrariesOfReleases rebuilds the libraries from npm, and compares the result with the file.
func TestLibrariesOfReleases(t *testing.T) {
	const file = "site/usechat/libraries.js"
	modules, made := chatclients.Modules(t), filepath.Join(t.TempDir(), "libraries.js")
	cmd := exec.CommandContext(t.Context(), filepath.Join(modules, "@esbuild", "linux-x64", "bin", "esbuild"),
		"libraries.mjs", "--bundle", "--minify", "--format=esm", "--legal-comments=none", "--log-level=error",
		`--define:process.env.NODE_ENV="production"`, "--outfile="+made)
	cmd.Env = append(os.Environ(), "NODE_PATH="+modules)
	if said, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	want := read(t, made)
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(read(t, file), want) {
		t.Errorf("%s differs from npm: run this test with -update, then update the hash and LICENSES.txt",
			file)
	}
	for _, m := range regexp.MustCompile(`(?m)^(\S+) (\d+\.\d+\.\d+) \(`).FindAllStringSubmatch(
		string(read(t, "site/usechat/LICENSES.txt")), -1) {
		if of := read(t, filepath.Join(modules, m[1], "package.json")); !bytes.Contains(of, []byte(`"`+m[2]+`"`)) {
			t.Errorf("LICENSES.txt names %s %s, which differs from npm", m[1], m[2])
		}
	}
}

func TestLibrariesUnchanged(t *testing.T) {
	const want = "aa5dbde947d5cbbee1a1b0bc850e0420744905f2febc67568ee9453f58870833"
	if got := fmt.Sprintf("%x", sha256.Sum256(read(t, "site/usechat/libraries.js"))); got != want {
		t.Errorf("libraries.js has the hash %s", got)
	}
}

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
