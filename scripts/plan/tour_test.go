package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

// startDev starts the local server, and returns its port.
func startDev(t *testing.T) string {
	t.Helper()
	realpart.Long(t, "builds and starts the local server")
	bin := filepath.Join(t.TempDir(), "dev")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", bin, "../dev/local")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, bin)
	cmd.Env = append(os.Environ(), "PORT=0", "DATA_DIR="+t.TempDir(), "LOG_LEVEL=silent")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	t.Cleanup(func() { cancel(); _ = cmd.Wait() }) // cancel kills the process
	if err != nil {
		t.Fatal(err)
	}
	at := regexp.MustCompile(`Open http://127\.0\.0\.1:(\d+)/`)
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if m := at.FindStringSubmatch(lines.Text()); m != nil {
			return m[1]
		}
	}
	t.Fatal("the server did not start")
	return ""
}

// TestTour creates, refines, declines and confirms a plan as the package comment shows, until the issue exists.
func TestTour(t *testing.T) {
	port := startDev(t)
	say := func(typed string, want error, args ...string) string {
		t.Helper()
		var out strings.Builder
		getenv := func(name string) string { return map[string]string{"PORT": port}[name] }
		if err := execute(t.Context(), args, getenv, strings.NewReader(typed), &out,
			io.Discard); !errors.Is(err, want) {
			t.Fatalf("%q: %v\n%s", args, err, out.String())
		}
		return out.String()
	}
	var s struct{ SessionID, PlanHash, Status string }
	begun := say("", nil, "start", "-json",
		"plan: fix the broken link of demo/site and open an issue about it, by tonight")
	if err := json.Unmarshal([]byte(begun), &s); err != nil || s.Status != "AWAITING_CONFIRMATION" {
		t.Fatalf("start: %v: %s", err, begun)
	}
	if out := say("", nil, "refine", s.SessionID, "make", "step", "2", "smaller"); !strings.Contains(out,
		"revision 2") {
		t.Errorf("after refine: %s", out)
	}
	if out := say("no\n", errNo, "confirm", s.SessionID); !strings.Contains(out, "1. [PENDING] Find the broken link") ||
		!strings.Contains(out, "May create 1 issue in demo/site") {
		t.Errorf("confirm prints %s", out)
	}
	say("", nil, "show", s.SessionID)
	if out := say("yes\n", nil, "confirm", s.SessionID); !strings.Contains(out, "COMPLETED") ||
		!strings.Contains(out, "/dev/github/demo/site/issues/3") {
		t.Errorf("after confirm: %s", out)
	}
	if out := say("", nil, "log", s.SessionID); !strings.Contains(out, "github.createIssue succeeded") {
		t.Errorf("log: %s", out)
	}
	begun = say("", nil, "start", "-json", "plan: open an issue about the link of demo/site")
	if err := json.Unmarshal([]byte(begun), &s); err != nil {
		t.Fatal(err)
	}
	if out := say("", errNo, "cancel", s.SessionID); !strings.Contains(out, "FAILED") {
		t.Errorf("after cancel: %s", out)
	}
	begun = say("", nil, "start", "-json", "plan: open an issue about the broken link of demo/site")
	if err := json.Unmarshal([]byte(begun), &s); err != nil {
		t.Fatal(err)
	}
	if out := say("0123456789\n", errNo, "approve", s.SessionID); !strings.Contains(out, "Not approved") ||
		!strings.Contains(out, "May create 1 issue in demo/site") {
		t.Errorf("approve prints %s", out)
	}
	say(s.PlanHash[:shown]+"\n", nil, "approve", s.SessionID)
	if out := say("", nil, "watch", s.SessionID); !strings.Contains(out, "COMPLETED") {
		t.Errorf("watch prints %s", out)
	}
	begun = say("", nil, "start", "-json", "plan: open an issue about the link of demo/site again")
	if err := json.Unmarshal([]byte(begun), &s); err != nil {
		t.Fatal(err)
	}
	if out := say("", errNo, "reject", s.SessionID); !strings.Contains(out, "FAILED") {
		t.Errorf("after reject: %s", out)
	}
	if out := say("", nil, "list"); strings.Count(out, "\n") != 4 || !strings.Contains(out, s.SessionID+"  FAILED") {
		t.Errorf("list prints %s", out)
	}
}

func TestEnvironment(t *testing.T) {
	file := filepath.Join(t.TempDir(), ".env")
	if err := os.WriteFile(file, []byte("# ours\nexport A=\"one two\"\nB=file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	get, err := environment(file, func(name string) string { return map[string]string{"B": "set"}[name] })
	if err != nil || get("A") != "one two" || get("B") != "set" || get("C") != "" {
		t.Errorf("%v: A is %q, B %q, C %q", err, get("A"), get("B"), get("C"))
	}
}

func TestDeadline(t *testing.T) {
	now := func() time.Time { return time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC) }
	for by, want := range map[string]string{"6h": "2026-05-04T16:00:00Z",
		"2026-05-05T00:00:00Z": "2026-05-05T00:00:00Z",
		"tonight":              ""} {
		c := &command{by: by, now: now}
		if got, err := c.deadline(); got != want || (err == nil) != (want != "") {
			t.Errorf("%s: %s, %v", by, got, err)
		}
	}
}
