package ui_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/browsertest"
	"github.com/countersign-run/countersign/shared/testkit/chatclients"
)

// TestPage uses a page with the AI SDK's useChat in Chromium (testdata/page.mjs, testdata/browse.mjs).
func TestPage(t *testing.T) {
	browser := browsertest.New(t)
	dir := t.TempDir()
	chatclients.Bundle(t, "testdata/page.mjs", filepath.Join(dir, "page.js"))
	html := `<!doctype html><title>A chat</title><link rel="icon" href="data:,"><div id="root"></div>` +
		`<script type="module" src="page.js"></script>`
	if err := os.WriteFile(filepath.Join(dir, "index.html"), []byte(html), 0o600); err != nil {
		t.Fatal(err)
	}
	page := httptest.NewServer(http.FileServer(http.Dir(dir)))
	defer page.Close()
	w := chatclients.Open(t, "ALLOWED_ORIGINS="+page.URL)
	for name, uid := range map[string]string{"ANA": "ana", "EVE": "eve"} {
		token, err := w.SignIn(t.Context(), uid)
		if err != nil {
			t.Fatal(err)
		}
		t.Setenv(name, token)
	}
	t.Setenv("API", w.Base+"/api/agent/ui")
	chatclients.Mails(w, "bob@example.com")
	browser.Run("testdata/browse.mjs", page.URL, nil)
	sent(t, w, 2)
}
