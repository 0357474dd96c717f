package web_test

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/web"
)

func site(t *testing.T, o web.Options) *web.Site {
	t.Helper()
	s, err := web.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func get(s http.Handler, method, target string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, target, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

var widget = fstest.MapFS{"gemini-chat.js": {Data: []byte("export {};")}, "parts/style.css": {Data: []byte("p {}")},
	"client.d.ts": {Data: []byte("export {};")}}

func TestConsolePolicy(t *testing.T) {
	s := site(t, web.Options{})
	for target, kind := range map[string]string{
		"/": "text/html; charset=utf-8", "/app.js": "text/javascript; charset=utf-8",
		"/style.css": "text/css; charset=utf-8", "/favicon.svg": "image/svg+xml",
	} {
		w := get(s, "GET", target)
		if w.Code != 200 || w.Body.Len() == 0 || w.Header().Get("Content-Type") != kind {
			t.Errorf("%s: %d with %d bytes of %q", target, w.Code, w.Body.Len(), w.Header().Get("Content-Type"))
		}
		csp := w.Header().Get("Content-Security-Policy")
		parts := []string{"default-src 'none'", "frame-ancestors 'none'"}
		if target == "/" {
			parts = append(parts, "script-src 'self';", "connect-src 'self';", "require-trusted-types-for 'script'")
		}
		for _, part := range parts {
			if !strings.Contains(csp, part) {
				t.Errorf("%s: the policy lacks %s", target, part)
			}
		}
		if strings.Contains(csp, "unsafe") || w.Header().Get("Access-Control-Allow-Origin") != "" ||
			w.Header().Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", target, w.Header())
		}
	}
}

// TestStyleNonce checks the nonce, because xterm creates style elements (xtermjs/xterm.js#4445).
func TestStyleNonce(t *testing.T) {
	s := site(t, web.Options{})
	nonce := regexp.MustCompile(`style-src 'self' 'nonce-([A-Z0-9]{26})';`)
	seen := map[string]bool{}
	for range 3 {
		w := get(s, "GET", "/")
		m := nonce.FindStringSubmatch(w.Header().Get("Content-Security-Policy"))
		if m == nil || !strings.Contains(w.Body.String(), `nonce="`+m[1]+`"`) {
			t.Fatalf("%s is not the policy of\n%s", w.Header().Get("Content-Security-Policy"), w.Body)
		}
		seen[m[1]] = true
	}
	if len(seen) != 3 {
		t.Errorf("the nonces are %v", seen)
	}
}

// TestXtermFilesOfRelease compares the vendored files with the package @xterm/xterm 6.0.0.
func TestXtermFilesOfRelease(t *testing.T) {
	for name, want := range map[string]string{
		// lib/xterm.mjs, css/xterm.css, LICENSE and typings/xterm.d.ts of the package
		"site/xterm/xterm.mjs":   "b336ec65a086c056d4804b3d4c2347da5663d3f23c3f25be866467bd8857ad59",
		"site/xterm/xterm.css":   "854a7c0fb70e8b1a083c16797ab827299fb18744f5ad34f227b48337e33293c6",
		"site/xterm/LICENSE.txt": "b569f629d00f2626a8100df2a1798210535621e42164dfd426a6fe5aac7b0ccd",
		"types/xterm.d.ts":       "99028aeff2d441798b242790750ee385ba621b460db5a7e2341ae1cab7f3e2af",
	} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(data)); got != want {
			t.Errorf("%s has the hash %s", name, got)
		}
	}
}

func TestPolicyOfAPIAndIssuer(t *testing.T) {
	s := site(t, web.Options{APIBase: "https://api.example.com/base", Issuer: discovery(t, okDiscovery), ClientID: "c"})
	csp := get(s, "GET", "/").Header().Get("Content-Security-Policy")
	want := regexp.MustCompile(
		`connect-src 'self' https://api\.example\.com wss://api\.example\.com http://127\.0\.0\.1:\d+;`)
	if !want.MatchString(csp) {
		t.Error(csp)
	}
}

// TestPolicyOfEachFunction compares the functions that the console can reach with the API's table and with the paths
// in the console's files.
func TestPolicyOfEachFunction(t *testing.T) {
	s := site(t, web.Options{APIBase: "https://agent-{function}-1.run.app"})
	csp := get(s, "GET", "/").Header().Get("Content-Security-Policy")
	reached := map[string]bool{}
	for _, m := range regexp.MustCompile(`(https|wss)://agent-([a-z-]+)-1\.run\.app`).FindAllStringSubmatch(csp, -1) {
		if (m[1] == "wss") != (m[2] == "terminal-attach") {
			t.Errorf("%s is reached by %s", m[2], m[1])
		}
		reached[m[2]] = true
	}
	asked := map[string]bool{}
	for _, f := range api.Functions {
		for _, r := range f.Routes {
			if fixed, _, _ := strings.Cut(r.Path, "{"); mentions(t, strings.TrimSuffix(fixed, "/")) {
				asked[f.Name] = true
			}
		}
	}
	delete(asked, "run") // only a prefix of the stream's path
	delete(asked, "mcp") // the console only shows its URL, for other programs
	if !maps.Equal(reached, asked) {
		t.Errorf("the policy names %v, the files ask %v", reached, asked)
	}
}

// TestFewerFunctions checks that the console of a deployment without some functions knows it, and cannot reach them.
func TestFewerFunctions(t *testing.T) {
	s := site(t, web.Options{APIBase: "https://agent-{function}-1.run.app",
		Functions: []string{"run", "runs", "threads"}})
	var c struct{ Functions []string }
	if err := json.Unmarshal(get(s, "GET", "/config.json").Body.Bytes(), &c); err != nil {
		t.Fatal(err)
	}
	if want := []string{"runs", "threads"}; !slices.Equal(c.Functions, want) {
		t.Errorf("the console can call %q, want %q", c.Functions, want)
	}
	csp := get(s, "GET", "/").Header().Get("Content-Security-Policy")
	if !strings.Contains(csp, "agent-threads-1") || strings.Contains(csp, "agent-audit-1") {
		t.Error(csp)
	}
}

// mentions reports whether one of the console's files that call the API contains the path.
func mentions(t *testing.T, path string) bool {
	t.Helper()
	files, err := filepath.Glob("site/*.js")
	if err != nil {
		t.Fatal(err)
	}
	of, err := filepath.Glob("site/terminal/*.js")
	if err != nil {
		t.Fatal(err)
	}
	files = append(append(files, of...), "widget/site/client.js")
	ends := regexp.MustCompile(regexp.QuoteMeta(path) + "[^a-z]")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if ends.Match(data) {
			return true
		}
	}
	return false
}

// TestIssuerUnreachable checks that an unreachable issuer does not delay every file of the console.
func TestIssuerUnreachable(t *testing.T) {
	asked := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.WriteHeader(http.StatusBadGateway)
	}))
	t.Cleanup(srv.Close)
	s := site(t, web.Options{Issuer: srv.URL, ClientID: "c"})
	for _, target := range []string{"/app.js", "/", "/style.css", "/config.json"} {
		if w := get(s, "GET", target); target != "/config.json" && w.Code != 200 {
			t.Errorf("%s: %d", target, w.Code)
		}
	}
	if asked != 1 {
		t.Errorf("it was asked %d times", asked)
	}
}

// TestIssuerAsksToWait checks that an issuer that answers 503 with Retry-After is not asked before that time.
func TestIssuerAsksToWait(t *testing.T) {
	asked, now := 0, time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.Header().Set("Retry-After", "60")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	t.Cleanup(srv.Close)
	s := site(t, web.Options{Issuer: srv.URL, ClientID: "c", Now: func() time.Time { return now }})
	for _, at := range []struct {
		second, want int
	}{{0, 1}, {6, 1}, {59, 1}, {64, 2}} {
		now = time.Date(2026, 11, 21, 9, 0, at.second, 0, time.UTC)
		if w := get(s, "GET", "/config.json"); w.Code != http.StatusServiceUnavailable || asked != at.want {
			t.Errorf("after %d s: %d, and it was asked %d times; want 503, %d", at.second, w.Code, asked, at.want)
		}
	}
}

func TestWidgetAnyOrigin(t *testing.T) {
	s := site(t, web.Options{Widget: widget})
	for target, kind := range map[string]string{"/widget/gemini-chat.js": "text/javascript; charset=utf-8",
		"/widget/parts/style.css": "text/css; charset=utf-8",
		"/widget/client.d.ts":     "text/plain; charset=utf-8"} {
		h := get(s, "GET", target, "Origin", "https://shop.example").Header()
		if h.Get("Content-Type") != kind || h.Get("Access-Control-Allow-Origin") != "*" ||
			h.Get("Cross-Origin-Resource-Policy") != "cross-origin" ||
			h.Get("X-Content-Type-Options") != "nosniff" || h.Get("ETag") == "" {
			t.Errorf("%s: %v", target, h)
		}
	}
	if _, err := web.New(web.Options{Widget: fstest.MapFS{"a.exe": {}}}); err == nil {
		t.Error("a file of no known type is served")
	}
}

// TestDescriptionAnyOrigin checks that the description has the deployment's server and can be read by pages of any
// origin.
func TestDescriptionAnyOrigin(t *testing.T) {
	for base, want := range map[string]string{
		"":                             `{"url":"/"}`,
		"https://api.example.com/base": `{"url":"https://api.example.com/base"}`,
		"https://agent-{function}-1.run.app": `{"url":"https://agent-{function}-1.run.app",` +
			`"variables":{"function":{"default":"run","description":"The function that serves the path."}}}`,
	} {
		s := site(t, web.Options{APIBase: base})
		w := get(s, "GET", "/openapi.json", "Origin", "https://shop.example")
		var doc struct {
			OpenAPI string
			Servers []map[string]any
			Paths   map[string]any
		}
		if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil || len(doc.Servers) != 1 {
			t.Fatalf("%v, %v", err, doc.Servers)
		}
		delete(doc.Servers[0], "description")
		if got, _ := json.Marshal(doc.Servers[0]); string(got) != want || doc.OpenAPI != "3.1.0" ||
			doc.Paths["/openapi.json"] == nil {
			t.Errorf("for %q its server is %s", base, got)
		}
		h := w.Header()
		if h.Get("Access-Control-Allow-Origin") != "*" || h.Get("Content-Type") != "application/json; charset=utf-8" {
			t.Errorf("%v", h)
		}
		if w := get(s, "GET", "/openapi.json", "If-None-Match", h.Get("ETag")); w.Code != http.StatusNotModified {
			t.Errorf("%d for a page that has it", w.Code)
		}
	}
}

func TestOtherPathsNotFound(t *testing.T) {
	s := site(t, web.Options{Widget: widget})
	for _, target := range []string{"/nothing", "/site/app.js", "/site", "/..", "/index.html/", "/web.go", "/widget",
		"/widget/", "/widget/parts/", "/widget/../app.js", "/App.js", "/app.js/"} {
		if w := get(s, "GET", target); w.Code != http.StatusNotFound ||
			!strings.Contains(w.Body.String(), "no_such_path") {
			t.Errorf("%s: %d, want 404", target, w.Code)
		}
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "OPTIONS"} {
		if w := get(s, method, "/"); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s /: %d", method, w.Code)
		}
	}
}

func TestFileNotModified(t *testing.T) {
	s := site(t, web.Options{})
	etag := get(s, "GET", "/app.js").Header().Get("ETag")
	if w := get(s, "GET", "/app.js", "If-None-Match", etag); w.Code != http.StatusNotModified || w.Body.Len() > 0 {
		t.Errorf("%d with %d bytes", w.Code, w.Body.Len())
	}
	if w := get(s, "HEAD", "/app.js"); w.Code != 200 || w.Body.Len() > 0 {
		t.Errorf("HEAD: %d with %d bytes", w.Code, w.Body.Len())
	}
}

// TestFilesInGzip checks that clients that accept gzip get it, that each form has its own ETag, and that pages,
// pictures and ranges are sent uncompressed.
func TestFilesInGzip(t *testing.T) {
	s := site(t, web.Options{})
	plain := get(s, "GET", "/app.js")
	for coding, packed := range map[string]bool{"gzip": true, "br, GZIP;q=0.5": true, "gzip ; q=1": true,
		"": false, "br": false, "gzip;q=0": false, "gzip;q=0.000, br": false, "gzip;q=x": false, "xgzip": false} {
		w := get(s, "GET", "/app.js", "Accept-Encoding", coding)
		h := w.Header()
		if h.Get("Vary") != "Accept-Encoding" || (h.Get("Content-Encoding") == "gzip") != packed ||
			(h.Get("ETag") != plain.Header().Get("ETag")) != packed {
			t.Errorf("%q: %v", coding, h)
		}
		body := io.Reader(w.Body)
		if packed {
			if w.Body.Len() > plain.Body.Len()/2 {
				t.Errorf("%q: %d of %d bytes", coding, w.Body.Len(), plain.Body.Len())
			}
			var err error
			if body, err = gzip.NewReader(w.Body); err != nil {
				t.Fatal(err)
			}
		}
		if data, err := io.ReadAll(body); err != nil || string(data) != plain.Body.String() {
			t.Errorf("%q: another file, %v", coding, err)
		}
		again := get(s, "GET", "/app.js", "Accept-Encoding", coding, "If-None-Match", h.Get("ETag"))
		if again.Code != http.StatusNotModified || again.Header().Get("Vary") != "Accept-Encoding" {
			t.Errorf("%q: %d, %v", coding, again.Code, again.Header())
		}
	}
	for _, c := range [][]string{{"/"}, {"/icon-512.png"}, {"/app.js", "Range", "bytes=0-9"}} {
		h := get(s, "GET", c[0], append(c[1:], "Accept-Encoding", "gzip")...).Header()
		if h.Get("Content-Encoding") != "" {
			t.Errorf("%s: %v", c, h)
		}
	}
}

// TestFileCachedByVersion checks that browsers keep such a file for good, and revalidate it under any other URL.
// Otherwise a page could mix files of two releases.
func TestFileCachedByVersion(t *testing.T) {
	s := site(t, web.Options{})
	for _, page := range []string{"/", "/verify"} {
		loads := regexp.MustCompile(`(?:src|href)="(/bundle/[^"]+)"`).FindAllStringSubmatch(
			get(s, "GET", page).Body.String(), -1)
		if len(loads) != 2 {
			t.Errorf("%s loads %v", page, loads)
		}
		for _, m := range loads {
			w := get(s, "GET", m[1])
			if w.Code != 200 || !strings.Contains(w.Header().Get("Cache-Control"), "immutable") {
				t.Errorf("%s: %d %v", m[1], w.Code, w.Header())
			}
			other := regexp.MustCompile("v=.{4}").ReplaceAllString(m[1], "v=0000")
			if w := get(s, "GET", other); w.Code != 200 || w.Header().Get("Cache-Control") != "no-cache" {
				t.Errorf("%s: %d %v", other, w.Code, w.Header())
			}
		}
	}
}

// discovery starts an issuer that publishes the document, with its own URL in place of ISSUER, and returns the URL.
func discovery(t *testing.T, document string) string {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if document == "" || r.URL.Path != "/.well-known/openid-configuration" {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(strings.ReplaceAll(document, "ISSUER", "http://"+r.Host)))
	}))
	t.Cleanup(srv.Close)
	return srv.URL
}

const okDiscovery = `{"issuer":"ISSUER","authorization_endpoint":"ISSUER/authorize","token_endpoint":"ISSUER/token","code_challenge_methods_supported":["plain","S256"],"response_types_supported":["code","id_token"]}`

func TestConfigurationSignIn(t *testing.T) {
	for name, c := range map[string]struct {
		document string
		status   int
		says     string
	}{
		"code":     {okDiscovery, 200, `"flow":"code"`},
		"id_token": {`{"issuer":"ISSUER","authorization_endpoint":"ISSUER/a","response_types_supported":["id_token"]}`, 200, `"flow":"id_token"`},
		"no page":  {`{"issuer":"ISSUER","response_types_supported":["id_token"]}`, 401, "no page to sign in at"},
		"neither":  {`{"issuer":"ISSUER","authorization_endpoint":"ISSUER/a","token_endpoint":"ISSUER/t","response_types_supported":["code"]}`, 401, "neither an authorization code"},
		"another": {`{"issuer":"https://evil.example","authorization_endpoint":"ISSUER/a"}`, 401,
			"names another issuer"},
		"a script": {`{"issuer":"ISSUER","authorization_endpoint":"javascript:alert(1)"}`, 401,
			"no page to sign in at"},
		"not there":      {"", 503, "temporarily unavailable"},
		"not a document": {"<html>", 503, "temporarily unavailable"},
	} {
		t.Run(name, func(t *testing.T) {
			w := get(site(t, web.Options{Release: "r1", Issuer: discovery(t, c.document), ClientID: "client"}), "GET",
				"/config.json")
			if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) || !json.Valid(w.Body.Bytes()) ||
				w.Header().Get("Cache-Control") != "no-store" {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
	local := get(site(t, web.Options{Release: "r1", Local: true, LocalUsers: true}), "GET",
		"/config.json").Body.String()
	if strings.TrimSpace(local) != `{"release":"r1","apiBase":"","local":true,"signIn":{"kind":"local"}}` {
		t.Error(local)
	}
	if none := get(site(t, web.Options{}), "GET", "/config.json").Body.String(); !strings.Contains(none,
		`"kind":"none"`) {
		t.Error(none)
	}
}

// TestFilesWithoutInlineCode checks that the files contain nothing that the policy forbids, because browsers would
// block it without telling the user.
func TestFilesWithoutInlineCode(t *testing.T) {
	markup := regexp.MustCompile(
		`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|DOMParser|createContextualFragment`)
	inline := regexp.MustCompile(`(?i)<script(?:\s[^>]*)?>[^<]|\son\w+\s*=|\sstyle\s*=|<style|javascript:|https?://`)
	foreign := regexp.MustCompile(`from '[^.]|import\('[^.]|@import '[^.]|@import [^']|url\(`)
	files := 0
	err := fs.WalkDir(os.DirFS("site"), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || path.Ext(name) == ".svg" {
			return err
		}
		files++
		data, err := os.ReadFile(path.Join("site", name))
		re := markup
		if strings.HasSuffix(name, ".html") {
			re = inline
		}
		if m := re.Find(data); m != nil {
			t.Errorf("%s holds %q", name, m)
		}
		if m := foreign.Find(data); m != nil {
			t.Errorf("%s loads %q", name, m)
		}
		return err
	})
	if err != nil || files < 10 {
		t.Fatalf("%d files: %v", files, err)
	}
}

// TestWidgetEditModules checks that any page can load the console's modules for editing, with all their imports.
func TestWidgetEditModules(t *testing.T) {
	s := site(t, web.Options{Widget: widget})
	imported := regexp.MustCompile(`(?m)^import [^;]*?from '\./([^']+)'`)
	var follow func(name string)
	seen := map[string]bool{}
	follow = func(name string) {
		if seen[name] {
			return
		}
		seen[name] = true
		w := get(s, "GET", "/widget/console/"+name)
		if w.Code != 200 || w.Header().Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: %d, %v", name, w.Code, w.Header())
		}
		for _, m := range imported.FindAllStringSubmatch(w.Body.String(), -1) {
			follow(m[1])
		}
	}
	follow("edit.js")
	if len(seen) < 5 {
		t.Errorf("only %v", seen)
	}
	if w := get(s, "GET", "/widget/console/app.js"); w.Code == 200 {
		t.Error("the rest of the console is served to any page")
	}
}
