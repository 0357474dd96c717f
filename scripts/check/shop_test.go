package check_test

import "testing"

// TestShop uses the example shop in Chromium (testdata/shop.mjs): as a plain shop, and through the assistant
// that the offline demo model speaks for.
func TestShop(t *testing.T) {
	inBrowser(t, "shop.mjs")
}
