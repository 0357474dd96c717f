package check_test

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/browsertest"
)

// TestWidgetReadme uses the two pages of shared/web/widget/README.md in the browser, unchanged except for the
// addresses, with a server that allows their origin and has the README's action.
func TestWidgetReadme(t *testing.T) {
	t.Parallel()
	browser := browsertest.New(t, "axe-core")
	server := newDevServer(t)
	n := &newcomer{devServer: server, readme: read(t, "../../shared/web/widget/README.md")}
	mux := http.NewServeMux()
	for path, title := range map[string]string{"/{$}": "On a page of your own", "/client": "The API from a page"} {
		page := strings.ReplaceAll(n.code(title, 0), "127.0.0.1:8080", server.addr)
		if !strings.HasPrefix(page, "<!doctype html>") {
			t.Fatalf("the first block is no page:\n%s", page)
		}
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write([]byte(page))
		})
	}
	site := httptest.NewServer(mux)
	t.Cleanup(site.Close)
	setting, _, _ := strings.Cut(n.code("On a page of your own", 1), "=")
	if setting != "ALLOWED_ORIGINS" {
		t.Fatalf("the command sets %q", setting)
	}
	actions := t.TempDir()
	for _, name := range []string{"plugin.yaml", "submit-rating.jay-action"} {
		write(t, filepath.Join(actions, name), n.file("actions/"+name))
	}
	server.env = []string{setting + "=" + site.URL, "ACTIONS=" + actions,
		"ACTION_KEY=" + strings.Repeat("0123456789abcdef", 2)}
	server.start()
	browser.Run("testdata/widgetreadme.mjs", site.URL, nil,
		"API_URL="+server.url)
	if got := server.mailbox(); !maps.Equal(got, map[string]int{"ken@example.org: The build is green": 1}) {
		t.Errorf("the mailbox holds %v", got)
	}
}

// file returns the block that names a file in its first line.
func (n *newcomer) file(name string) string {
	n.t.Helper()
	_, block, ok := strings.Cut(n.readme, "\n    # "+name+"\n")
	if !ok {
		n.t.Fatalf("README.md has no file %s", name)
	}
	block, _, _ = strings.Cut(block, "\n\n")
	return strings.ReplaceAll("\n"+block+"\n", "\n    ", "\n")
}
