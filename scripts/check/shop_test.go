package check_test

import "testing"

// TestShop uses the example shop in Chromium (testdata/shop.mjs): as an ordinary shop, and through the assistant with
// the offline demo model.
func TestShop(t *testing.T) {
	inBrowser(t, "shop.mjs")
}
