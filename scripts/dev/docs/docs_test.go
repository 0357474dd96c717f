package docs_test

import (
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/scripts/dev/docs"
	"github.com/countersign-run/countersign/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

func TestPageAndFiles(t *testing.T) {
	for path, kind := range map[string]string{"/docs": "text/html", "/docs/docs.js": "text/javascript",
		"/docs/docs.css": "text/css", "/docs/openapi-explorer/LICENSE.txt": "text/plain"} {
		w := httptest.NewRecorder()
		docs.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		csp := w.Header().Get("Content-Security-Policy")
		if w.Code != http.StatusOK || !strings.HasPrefix(w.Header().Get("Content-Type"), kind+";") ||
			!strings.Contains(csp, "script-src 'self';") ||
			!strings.Contains(csp, "require-trusted-types-for 'script'") {
			t.Errorf("%s: %d, %v", path, w.Code, w.Header())
		}
	}
	for _, path := range []string{"/docs/", "/docs/nothing", "/docs/index.html", "/docs/../docs.go",
		"/docs/openapi-explorer"} {
		w := httptest.NewRecorder()
		docs.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code == http.StatusOK {
			t.Errorf("%s is served", path)
		}
	}
}

// TestViewerFilesOfRelease compares the viewer's files with the hashes of the package openapi-explorer 2.4.820:
// dist/browser/openapi-explorer.min.js and LICENSE.
func TestViewerFilesOfRelease(t *testing.T) {
	for name, want := range map[string]string{
		"openapi-explorer.min.js": "6bb3f4f29b0d740f1fc0970cd4245e01d2c1346df5a26ecd20a2f7a5dda5f837",
		"LICENSE.txt":             "43070e2d4e532684de521b885f385d0841030efa2b1a20bafb76133a5e1379c1",
	} {
		data, err := os.ReadFile("site/openapi-explorer/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(data)); got != want {
			t.Errorf("%s has the hash %s", name, got)
		}
	}
}
