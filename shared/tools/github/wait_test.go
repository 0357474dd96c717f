package github_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/testkit/fakegithub"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/testkit/toolstest"
	"github.com/countersign-run/countersign/shared/tools/github"
)

// waiting returns a function that checks fix once, as a call of 60 minutes does that started the given time ago.
func waiting(t *testing.T) (*env, func(waited time.Duration) (json.RawMessage, error)) {
	t.Helper()
	w, _ := looking(t)
	now := time.Date(2026, 3, 2, 10, 0, 0, 0, time.UTC)
	wait := github.New(accounts{}, github.Options{Endpoint: "http://github.test/",
		Now: func() time.Time { return now }})[github.WaitForChecks]
	args, err := wait.Normalize(json.RawMessage(`{"owner":"` + toolstest.GoogleUser +
		`","repo":"kit","ref":"fix","minutes":60}`))
	if err != nil {
		t.Fatal(err)
	}
	return w, func(waited time.Duration) (json.RawMessage, error) {
		call := w.Call
		call.Args, call.Since = args, now.Add(-waited)
		return wait.Execute(t.Context(), call)
	}
}

// TestWaitForChecks tests checks that are missing, run, fail, succeed, and do not end in time. The pauses grow, and the
// last one ends with the wait.
func TestWaitForChecks(t *testing.T) {
	w, look := waiting(t)
	pauses := func(waited, want time.Duration) {
		t.Helper()
		if out, err := look(waited); err == nil {
			t.Errorf("after %v: %s", waited, out)
		} else if after, ok := tool.LaterAfter(err); !ok || after != want {
			t.Errorf("after %v: %v, %v", waited, after, err)
		}
	}
	ends := func(waited time.Duration, with string) {
		t.Helper()
		if out, err := look(waited); err != nil || !strings.Contains(string(out), with) {
			t.Errorf("after %v: %s, %v; want %s", waited, out, err, with)
		}
	}
	add := func(status, conclusion string) {
		w.AddCheck(toolstest.GoogleUser, "kit", "fix", fakegithub.Check{Name: "test", Status: status,
			Conclusion: conclusion})
	}
	pauses(0, 30*time.Second)
	ends(5*time.Minute, `"state":"none"`)
	add("queued", "")
	pauses(-time.Minute, 30*time.Second) // the clocks of two machines differ
	pauses(4*time.Minute, 2*time.Minute)
	pauses(40*time.Minute, 10*time.Minute)
	pauses(55*time.Minute, 5*time.Minute)
	ends(time.Hour, `"timedOut":true`)
	add("completed", "failure")
	ends(0, `"state":"failure"`)
	add("completed", "success")
	ends(0, `"state":"success"`)
}

// TestWaitDuringOutage makes GitHub fail while a call waits.
func TestWaitDuringOutage(t *testing.T) {
	w, look := waiting(t)
	const status = "repos/get-combined-status-for-ref"
	down := fakegoogle.Fault{Kind: fakegoogle.StatusBefore, Status: 503}
	w.Break(status, down, down, fakegoogle.Fault{Kind: fakegoogle.StatusBefore, Status: 401})
	if _, err := look(20 * time.Minute); err == nil || tool.IsTransient(err) {
		t.Errorf("during the wait: %v", err)
	} else if after, ok := tool.LaterAfter(err); !ok || after != 10*time.Minute {
		t.Errorf("it looks again after %v: %v", after, err)
	}
	if _, err := look(time.Hour); !tool.IsTransient(err) {
		t.Errorf("at the end of the wait: %v", err)
	}
	if _, err := look(0); err == nil {
		t.Error("a call without access waits")
	} else if _, ok := tool.LaterAfter(err); ok {
		t.Errorf("a call without access waits: %v", err)
	}
}
