package check_test

import (
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/browsertest"
)

// TestFirstLoad counts the console's requests and received bytes in a fresh browser, and in one that has loaded the
// console before (testdata/load.mjs).
func TestFirstLoad(t *testing.T) {
	t.Parallel()
	browser := browsertest.New(t, "axe-core")
	server := newDevServer(t)
	server.start()
	browser.Run("testdata/load.mjs", server.url, nil)
}
