package demohost

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/testkit/cleanup"
)

// TestForgottenClaims checks that the list of started commands drops exactly those that settle no longer reports.
func TestForgottenClaims(t *testing.T) {
	now := testNow
	h, err := Open(Options{Dir: filepath.Join(t.TempDir(), "host"), Now: func() time.Time { return now }})
	cleanup.Close(t, h, err)
	stamp := h.stamp(true)
	for _, id := range []string{"old", "young", "new"} {
		if err := h.claim(id); err != nil {
			t.Fatal(err)
		}
		now = now.Add(4 * 24 * time.Hour)
	}
	for id, want := range map[string]bool{"old": false, "young": true, "new": true} {
		if h.claimed(id) != want {
			t.Errorf("%s is listed: %t", id, !want)
		}
	}
	if h.stamp(false) != stamp {
		t.Error("the stamp is another one")
	}
}
