package check_test

import (
	"maps"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/browsertest"
)

// TestExamples has one conversation in all the pages of /examples in Chromium (testdata/examples.mjs). An approval in
// any of them sends once; rejected and waiting mails are not sent.
func TestExamples(t *testing.T) {
	t.Parallel()
	browser := browsertest.New(t, "axe-core")
	server := newDevServer(t)
	server.start()
	browser.Run("testdata/examples.mjs", server.url, nil)
	want := map[string]int{"ana@example.com: The demo is at ten": 1, "eve@example.org: It is dry": 1}
	if got := server.mailbox(); !maps.Equal(got, want) {
		t.Errorf("the mailbox holds %v", got)
	}
}
