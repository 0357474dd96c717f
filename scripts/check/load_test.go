package check_test

import (
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/browsertest"
)

// TestFirstLoad counts what the console requests and how many bytes arrive where a browser has nothing of it yet, and
// where it has loaded the console before (testdata/load.mjs).
func TestFirstLoad(t *testing.T) {
	t.Parallel()
	browser := browsertest.New(t, "axe-core")
	server := newDevServer(t)
	server.start()
	browser.Run("testdata/load.mjs", server.url, func() { t.Error("nobody asks for a restart here") })
}
