package check_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/testkit"
)

// terminal opens a terminal on the demo host, which every new user has among their hosts.
func (u *user) terminal() string {
	u.t.Helper()
	a, err := u.Client(u.t.Context(), "GET", "/api/agent/hosts", nil)
	var got struct {
		Hosts []struct{ HostID, Name string }
	}
	if err := accepted(a, err); err != nil {
		u.t.Fatal(err)
	}
	if err := json.Unmarshal(a.Body, &got); err != nil || len(got.Hosts) != 1 || got.Hosts[0].Name != "demo" {
		u.t.Fatalf("a new user's hosts: %s, %v", a.Body, err)
	}
	id, err := u.OpenTerminal(u.t.Context(), got.Hosts[0].HostID)
	if err != nil {
		u.t.Fatal(err)
	}
	return id
}

func (u *user) askOn(terminal, prompt string) string {
	u.t.Helper()
	a, err := u.AskOn(u.t.Context(), terminal, "", prompt)
	if err := accepted(a, err); err != nil {
		u.t.Fatal(err)
	}
	return a.RunID
}

// waiting waits for the run's next card, and returns the run.
func (u *user) waiting(run string) (a testkit.Answer) {
	u.t.Helper()
	u.until("the run asks", func() (so bool) {
		var err error
		a, err = u.Run(u.t.Context(), run)
		return err == nil && len(a.Approvals) == 1
	})
	return a
}

// onDisk returns a file on the demo host.
func (s *devServer) onDisk(name string) string {
	return filepath.Join(s.data, "demo-host", "disk", name)
}

// TestTerminalOfANewUser makes a new user clean up the demo host, while the server is killed before each answer and in
// the middle of a command. Waiting commands continue to wait, approved ones run once, and an interrupted one is not
// repeated.
func TestTerminalOfANewUser(t *testing.T) {
	t.Parallel()
	s := newDevServer(t)
	s.start()
	u := s.signIn()
	terminal := u.terminal()

	run := u.askOn(terminal, "Check disk usage and clean up /tmp if over 50%")
	old := s.onDisk("tmp/db-dump-old.sql")
	u.waiting(run)
	u.killAndStart()
	if _, err := os.Stat(old); err != nil {
		t.Fatalf("it was deleted before the yes: %v", err)
	}
	u.approve(run)
	if got := u.ended(run); got != "completed" {
		t.Errorf("the run is %s", got)
	}
	if _, err := os.Stat(old); !os.IsNotExist(err) {
		t.Errorf("it was not deleted: %v", err)
	}
	a, err := u.Run(t.Context(), run)
	if err != nil || !strings.Contains(a.Summary, "/tmp was 74% full and is 2% full now") {
		t.Errorf("%v, %s; want a.Summary with %q", err, a.Body, "/tmp was 74% full and is 2% full now")
	}

	run = u.askOn(terminal, "run `echo begun >> /root/witness; sleep 600; echo ended >> /root/witness`")
	u.approve(run)
	witness := s.onDisk("root/witness")
	u.until("the command has begun", func() bool { text, _ := os.ReadFile(witness); return string(text) == "begun\n" })
	u.killAndStart()
	a = u.waiting(run)
	if a.Approvals[0].Kind != "review" {
		t.Errorf("what was cut off is not for its user to settle: %s", a.Body)
	}
	if text, err := os.ReadFile(witness); err != nil || string(text) != "begun\n" {
		t.Errorf("it was carried out as %q, %v", text, err)
	}
	u.killAndStart()
	if err := accepted(u.Resolve(t.Context(), a.Approvals[0], "confirm_done")); err != nil {
		t.Fatalf("%v\n%s", err, a.Body)
	}
	if got := u.ended(run); got != "completed" {
		t.Errorf("the run is %s", got)
	}
	if text, err := os.ReadFile(witness); err != nil || string(text) != "begun\n" {
		t.Errorf("it was carried out again: %q, %v", text, err)
	}

	for i := range 6 { // killed at different moments after the approval
		if err := os.RemoveAll(witness); err != nil {
			t.Fatal(err)
		}
		run = u.askOn(terminal, "run `echo once >> /root/witness`")
		u.approve(run)
		time.Sleep(time.Duration(i) * 8 * time.Millisecond)
		u.killAndStart()
		u.until("the run ends or asks", func() bool {
			a, err = u.Run(t.Context(), run)
			return err == nil && (a.Status == "completed" || len(a.Approvals) == 1)
		})
		text, err := os.ReadFile(witness)
		if a.Status == "completed" && (err != nil || string(text) != "once\n") || len(text) > len("once\n") {
			t.Errorf("killed %d ms after the yes the run is %s, and the command ran as %q", i*8, a.Status, text)
		}
		if len(a.Approvals) == 1 {
			if err := accepted(u.Resolve(t.Context(), a.Approvals[0], "confirm_done")); err != nil {
				t.Fatal(err)
			}
			u.ended(run)
		}
	}
	s.stop()
}
