package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/await"
)

// TestMomentsOfSentence creates an event. The stored sentence about the outcome comes with the time, the time zone, and
// the part of the sentence that names the time.
func TestMomentsOfSentence(t *testing.T) {
	ana := serve(t)
	r := ana.lunch(map[string]any{"timeZone": "Asia/Tokyo"})
	var done struct{ ThreadID string }
	ana.call(http.MethodPost, "/api/agent/approvals/resolve", map[string]any{"approvalId": r.Approvals[0].ApprovalID,
		"argsHash": r.Approvals[0].ArgsHash, "decision": "approve_once"}, &done)
	var thread struct {
		Messages []struct {
			Text, Outcome string
			Moments       []struct{ Text, At, TimeZone string }
		}
	}
	await.That(t, "the outcome is in the thread", func() bool {
		ana.call(http.MethodGet, "/api/agent/threads/"+done.ThreadID+"/messages", nil, &thread)
		return len(thread.Messages) > 2
	})
	for i, m := range thread.Messages {
		last := i == len(thread.Messages)-1
		if (len(m.Moments) > 0) != last {
			t.Errorf("message %d: %+v", i, m)
		}
		for _, at := range m.Moments {
			if !strings.Contains(m.Outcome, at.Text) || at.At != r.starts().At || at.TimeZone != "Asia/Tokyo" {
				t.Errorf("%+v of %q", at, m.Outcome)
			}
		}
	}
}
