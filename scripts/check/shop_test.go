package check_test

import (
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/browsertest"
)

// TestShop uses the example shop in Chromium (testdata/shop.mjs): as a plain shop, and through the assistant
// that the offline demo model speaks for.
func TestShop(t *testing.T) {
	t.Parallel()
	browser := browsertest.New(t, "axe-core")
	server := newDevServer(t)
	server.start()
	browser.Run("testdata/shop.mjs", server.url, nil)
}
