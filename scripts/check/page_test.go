// Package check_test holds the checks that use Countersign from outside, as its users do: the built programs, over HTTP,
// in a browser.
package check_test

import (
	"context"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/browsertest"
)

// TestTrialPage uses the page of scripts/dev in Chromium (testdata/page.mjs), kills the server with -9 while an approval
// waits, and looks at the mailbox in the end: everything that was approved was sent, and once. SCREENSHOT_DIR, when set,
// gets the pictures.
func TestTrialPage(t *testing.T) {
	browser := browsertest.New(t)
	server := newDevServer(t)
	server.start()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	browser.Run(ctx, "testdata/page.mjs", server.url, func() {
		server.kill()
		server.start()
	})
	want := map[string]int{
		"ana@example.com: The demo is at ten": 1, "bob@example.com: Demo, moved": 1, "eve@example.org: This survives": 1,
		"kim@example.org: Lunch is ready": 1, "kim@example.org: Dinner is ready": 1,
	}
	got := server.mailbox()
	if len(got) != len(want) {
		t.Errorf("the mailbox holds %v", got)
	}
	for mail, times := range want {
		if got[mail] != times {
			t.Errorf("%q was sent %d times, want %d", mail, got[mail], times)
		}
	}
}
