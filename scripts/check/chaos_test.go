package check_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestChaos presses each button of /chaos in Chromium (testdata/chaos.mjs). The server kills itself, and its supervisor
// starts it again. Each promise is kept, according to the facts that the page reads. Another origin makes no fault.
// README's second picture is screenshot-chaos.png.
func TestChaos(t *testing.T) {
	server := inBrowser(t, "chaos.mjs")
	if dir := os.Getenv("SCREENSHOT_DIR"); dir != "" {
		shrink(t, filepath.Join(dir, "screenshot-chaos.png"))
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.url+"/dev/chaos",
		strings.NewReader(`{"fault":"fast"}`))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Origin", "https://evil.example")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusForbidden {
		t.Errorf("a fault from another origin: %s; want 403", res.Status)
	}
}

// TestChaosUnsigned forges a yes on a server that ignores signatures. The page then shows a broken promise.
func TestChaosUnsigned(t *testing.T) { inBrowser(t, "chaosunsigned.mjs", "DECISIONS=off") }
