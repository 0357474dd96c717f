package check_test

import "testing"

// TestFirstLoad counts the console's requests and received bytes in a fresh browser, and in one that has loaded the
// console before (testdata/load.mjs).
func TestFirstLoad(t *testing.T) {
	inBrowser(t, "load.mjs")
}
