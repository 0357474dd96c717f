package check_test

import (
	"context"
	"testing"
	"time"
)

// TestShop uses the example shop in Chromium (testdata/shop.mjs), as a plain shop.
func TestShop(t *testing.T) {
	browser := newBrowser(t)
	server := newDevServer(t)
	server.start()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	browser.run(ctx, "testdata/shop.mjs", server.url, func() { t.Error("nobody asks for a restart here") })
}
