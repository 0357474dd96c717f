package check_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/browsertest"
)

// TestCorrected corrects waiting cards in words (testdata/corrected.mjs). Each request is executed once.
func TestCorrected(t *testing.T) {
	server := inBrowser(t, "corrected.mjs", "MAX_OPEN_APPROVALS=100", "MAX_APPROVALS_PER_DAY=200")
	if got := server.mailbox(); len(got) != 2 {
		t.Errorf("the mailbox has %v; want two mails", got)
	}
}

// TestOffline decides while the server cannot be reached (testdata/offline.mjs).
func TestOffline(t *testing.T) {
	inBrowser(t, "offline.mjs")
}

// TestExpired makes a card expire while pages show it (testdata/expired.mjs).
func TestExpired(t *testing.T) {
	inBrowser(t, "expired.mjs", "APPROVAL_TTL=1m")
}

// TestTakenBack revokes permissions and undoes effects (testdata/takenback.mjs).
func TestTakenBack(t *testing.T) {
	inBrowser(t, "takenback.mjs")
}

// TestTyped types text into cards that are decided elsewhere (testdata/typed.mjs).
func TestTyped(t *testing.T) {
	inBrowser(t, "typed.mjs")
}

// TestPostponed approves calls whose service is too busy (testdata/postponed.mjs).
func TestPostponed(t *testing.T) {
	t.Parallel()
	browser := browsertest.New(t, "axe-core")
	var wait atomic.Value // Retry-After of the service, "0" if it is not busy
	wait.Store("0")
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if seconds := r.FormValue("wait"); seconds != "" {
			wait.Store(seconds)
		} else if asks := wait.Load().(string); asks != "0" {
			w.Header().Set("Retry-After", asks)
			w.WriteHeader(http.StatusServiceUnavailable)
		} else {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "{}") // the server will report the error
		}
	}))
	t.Cleanup(service.Close)
	server := newDevServer(t)
	n := &newcomer{devServer: server, readme: read(t, "../../shared/web/widget/README.md")}
	actions := t.TempDir()
	write(t, filepath.Join(actions, "plugin.yaml"), n.file("actions/plugin.yaml"))
	write(t, filepath.Join(actions, "submit-rating.jay-action"), strings.Replace(
		n.file("actions/submit-rating.jay-action"), "https://shop.example.com/internal/ratings", service.URL, 1))
	server.env = []string{"ACTIONS=" + actions, "ACTION_KEY=" + strings.Repeat("0123456789abcdef", 2),
		"GMAIL_UNITS_PER_MINUTE=115"} // the quota of one e-mail
	server.start()
	browser.Run("testdata/postponed.mjs", server.url, nil, "ENDPOINT="+service.URL)
}
