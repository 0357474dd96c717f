package check_test

import (
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/browsertest"
)

// TestPlansView uses the view of plans in Chromium (testdata/plans.mjs), with an API whose answers the script sets.
func TestPlansView(t *testing.T) {
	t.Parallel()
	browser := browsertest.New(t, "axe-core")
	browser.Run("testdata/plans.mjs", newFakeAPI(t).URL, nil)
}

// TestPlans makes the local server's planner propose and run a plan in Chromium (testdata/plansdev.mjs), and kills the
// server with -9 while the plan waits.
func TestPlans(t *testing.T) {
	inBrowser(t, "plansdev.mjs")
}
