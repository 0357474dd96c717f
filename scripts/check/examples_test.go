package check_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestExamples holds one conversation in all pages of /examples in Chromium (testdata/examples.mjs). An approval in any
// of them sends the e-mail once. Rejected and waiting e-mails are not sent.
func TestExamples(t *testing.T) {
	want := map[string]int{"ana@example.com: The demo is at ten": 1, "eve@example.org: It is dry": 1}
	if diff := cmp.Diff(want, inBrowser(t, "examples.mjs").mailbox()); diff != "" {
		t.Errorf("mailbox (-want +got):\n%s", diff)
	}
}
