package check_test

import (
	"context"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/testkit/browsertest"
)

// TestShop uses the example shop in Chromium (testdata/shop.mjs): as a plain shop, and through the assistant
// that the offline demo model speaks for.
func TestShop(t *testing.T) {
	t.Parallel()
	browser := browsertest.New(t, "axe-core")
	server := newDevServer(t)
	server.start()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	browser.Run(ctx, "testdata/shop.mjs", server.url, func() { t.Error("nobody asks for a restart here") })
}
