package check_test

import (
	"context"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/testkit/browsertest"
)

// TestPlansView uses the view of plans in Chromium (testdata/plans.mjs), on an API that says what the script tells it
// to.
func TestPlansView(t *testing.T) {
	browser := browsertest.New(t, "axe-core")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	browser.Run(ctx, "testdata/plans.mjs", newFakeAPI(t).URL, func() { t.Error("nobody asks for a restart here") })
}
