package check_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestExamples has one conversation in all the pages of /examples in Chromium (testdata/examples.mjs). An approval in
// any of them sends once; rejected and waiting e-mails are not sent.
func TestExamples(t *testing.T) {
	want := map[string]int{"ana@example.com: The demo is at ten": 1, "eve@example.org: It is dry": 1}
	if diff := cmp.Diff(want, inBrowser(t, "examples.mjs").mailbox()); diff != "" {
		t.Errorf("mailbox (-want +got):\n%s", diff)
	}
}
