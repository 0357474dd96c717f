package page_test

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/scripts/dev/page"
)

func get(method, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	page.Handler(http.NotFoundHandler()).ServeHTTP(w, r)
	return w
}

func TestThePageAndItsFilesAreServedUnderAStrictPolicy(t *testing.T) {
	for path, kind := range map[string]string{
		"/": "text/html; charset=utf-8", "/app.js": "text/javascript; charset=utf-8", "/style.css": "text/css; charset=utf-8", "/favicon.svg": "image/svg+xml",
	} {
		w := get("GET", path)
		if w.Code != 200 || w.Body.Len() == 0 {
			t.Errorf("%s: %d with %d bytes", path, w.Code, w.Body.Len())
		}
		if got := w.Header().Get("Content-Type"); got != kind {
			t.Errorf("%s is %q, want %q", path, got, kind)
		}
		csp := w.Header().Get("Content-Security-Policy")
		for _, part := range []string{"default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "require-trusted-types-for 'script'"} {
			if !strings.Contains(csp, part) {
				t.Errorf("%s: the policy lacks %s", path, part)
			}
		}
		if strings.Contains(csp, "unsafe") {
			t.Errorf("%s: the policy is unsafe: %s", path, csp)
		}
		if w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s may be sniffed", path)
		}
	}
}

func TestEverythingElseIsNotThere(t *testing.T) {
	for _, path := range []string{"/nothing", "/site/app.js", "/site", "/..", "/index.html/", "/page.go"} {
		if w := get("GET", path); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d, want 404", path, w.Code)
		}
	}
	if w := get("POST", "/"); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") == "" {
		t.Errorf("POST /: %d", w.Code)
	}
}

func TestAnUnchangedFileIsNotSentAgain(t *testing.T) {
	etag := get("GET", "/app.js").Header().Get("ETag")
	if w := get("GET", "/app.js", "If-None-Match", etag); w.Code != http.StatusNotModified || w.Body.Len() > 0 {
		t.Errorf("%d with %d bytes", w.Code, w.Body.Len())
	}
	if w := get("HEAD", "/app.js"); w.Code != 200 || w.Body.Len() > 0 {
		t.Errorf("HEAD: %d with %d bytes", w.Code, w.Body.Len())
	}
}

// What the policy forbids must not be in the files at all, since the browser would refuse it without a word to the user.
func TestTheFilesHoldNoInlineCodeAndMakeNoMarkup(t *testing.T) {
	markup := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|createContextualFragment`)
	inline := regexp.MustCompile(`(?i)<script(?:\s[^>]*)?>[^<]|\son\w+\s*=|\sstyle\s*=|<style|javascript:|https?://`)
	site := os.DirFS("site")
	names, err := fs.Glob(site, "*")
	if err != nil || len(names) < 5 {
		t.Fatalf("%d files: %v", len(names), err)
	}
	for _, name := range names {
		data, err := fs.ReadFile(site, name)
		if err != nil {
			t.Fatal(err)
		}
		re := markup
		if strings.HasSuffix(name, ".html") {
			re = inline
		}
		if m := re.Find(data); m != nil {
			t.Errorf("%s holds %q", name, m)
		}
	}
}
