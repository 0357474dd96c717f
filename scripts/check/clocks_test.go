package check_test

import (
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/browsertest"
)

// TestClocks reads cards in another language and another time zone than those they are made in (testdata/clocks.mjs).
func TestClocks(t *testing.T) {
	t.Parallel()
	browser := browsertest.New(t, "axe-core")
	server := newDevServer(t)
	server.start()
	browser.Run("testdata/clocks.mjs", server.url, nil)
}
