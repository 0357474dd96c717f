package check_test

import (
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/browsertest"
)

// TestCorrected corrects waiting cards, in words (testdata/corrected.mjs). Each wish is executed once.
func TestCorrected(t *testing.T) {
	t.Parallel()
	browser := browsertest.New(t, "axe-core")
	server := newDevServer(t)
	server.env = []string{"MAX_OPEN_APPROVALS=100", "MAX_APPROVALS_PER_DAY=200"}
	server.start()
	browser.Run("testdata/corrected.mjs", server.url, nil)
	if got := server.mailbox(); len(got) != 2 {
		t.Errorf("the mailbox holds %v", got)
	}
}

// TestOffline decides while the server cannot be reached (testdata/offline.mjs).
func TestOffline(t *testing.T) {
	t.Parallel()
	browser := browsertest.New(t, "axe-core")
	server := newDevServer(t)
	server.start()
	browser.Run("testdata/offline.mjs", server.url, nil)
}

// TestExpired has a card expire while pages show it (testdata/expired.mjs).
func TestExpired(t *testing.T) {
	t.Parallel()
	browser := browsertest.New(t, "axe-core")
	server := newDevServer(t)
	server.env = []string{"APPROVAL_TTL=1m"}
	server.start()
	browser.Run("testdata/expired.mjs", server.url, nil)
}

// TestTakenBack revokes permissions and undoes effects (testdata/takenback.mjs).
func TestTakenBack(t *testing.T) {
	t.Parallel()
	browser := browsertest.New(t, "axe-core")
	server := newDevServer(t)
	server.start()
	browser.Run("testdata/takenback.mjs", server.url, nil)
}
