package check_test

import (
	"bytes"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/browsertest"
)

// TestWorker opens the console a second time, without a server, and after a deployment (testdata/worker.mjs). The
// service worker answers the requests for the console's files and stores nothing of the API.
func TestWorker(t *testing.T) {
	t.Parallel()
	browser := browsertest.New(t, "axe-core")
	d := &deployment{next: newFakeAPI(t).Config.Handler, asked: map[string]bool{}}
	server := httptest.NewServer(d)
	t.Cleanup(server.Close)
	browser.Run("testdata/worker.mjs", server.URL, func() { t.Error("the script asked for a restart") })
}

// deployment is a server of the console that the script switches off and updates (/deployment/STATE). It records the
// requested paths.
type deployment struct {
	next http.Handler

	mu    sync.Mutex
	state string // "", "off" or "new"
	asked map[string]bool
}

func (d *deployment) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if state, ok := strings.CutPrefix(r.URL.Path, "/deployment/"); ok {
		_, _ = w.Write([]byte(d.enter(state))) // the script notices
		return
	}
	switch d.note(r.URL.Path) {
	case "off":
		panic(http.ErrAbortHandler)
	case "new":
		d.serveNew(w, r)
	default:
		d.next.ServeHTTP(w, r)
	}
}

// enter enters the state and returns the paths that were requested since the last call.
func (d *deployment) enter(state string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	paths := slices.Sorted(maps.Keys(d.asked))
	d.state, d.asked = state, map[string]bool{}
	return strings.Join(paths, " ")
}

// note records the request and returns the state.
func (d *deployment) note(path string) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.state != "off" {
		d.asked[path] = true
	}
	return d.state
}

// version matches the version of the console's modules in a page.
var version = regexp.MustCompile(`console\.js\?v=[0-9a-f]+`)

const newVersion = "console.js?v=0e1e55ed"

// serveNew answers as a later release whose modules have changed.
func (d *deployment) serveNew(w http.ResponseWriter, r *http.Request) {
	if !strings.HasSuffix(r.URL.RequestURI(), newVersion) && r.URL.Path != "/" {
		d.next.ServeHTTP(w, r)
		return
	}
	r = r.Clone(r.Context())
	r.Header.Del("Accept-Encoding")
	answer := httptest.NewRecorder()
	d.next.ServeHTTP(answer, r)
	maps.Copy(w.Header(), answer.Header())
	w.Header().Del("Content-Length")
	body := version.ReplaceAll(answer.Body.Bytes(), []byte(newVersion))
	if r.URL.Path != "/" {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		body = append(bytes.Clone(body), "\ndocument.documentElement.dataset.release = 'new';\n"...)
	}
	_, _ = w.Write(body) // the page may have left
}
