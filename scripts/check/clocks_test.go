package check_test

import "testing"

// TestClocks reads cards in another language and another time zone than those they are made in (testdata/clocks.mjs).
func TestClocks(t *testing.T) {
	inBrowser(t, "clocks.mjs")
}
