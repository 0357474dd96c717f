package check_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/emulators"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

// TestKilledInEachStep kills the local server with -9 at many moments of a run: during the model call, while the
// approval waits, and while the e-mail is sent. It restarts the server and checks the mailbox: each approved e-mail was
// sent once, and each run has ended.
func TestKilledInEachStep(t *testing.T) {
	walk(t, newDevServer(t), 12)
}

// TestKilledOnTheEmulators does the same on the real Firestore and Pub/Sub emulators, which a killed server leaves
// running for the next one.
func TestKilledOnTheEmulators(t *testing.T) {
	realpart.Emulators.Take(t)
	e, err := emulators.StartFirestore(t.Context(), io.Discard) // only to check whether it is installed
	if errors.Is(err, emulators.ErrAbsent) {
		realpart.Emulators.Absent(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Stop(); err != nil {
		t.Fatal(err)
	}
	s := newDevServer(t, "-emulators")
	walk(t, s, 2)
	s.stop()
	for _, note := range []string{"firestore-emulator.json", "pubsub-emulator.json"} {
		if _, err := os.Stat(s.data + "/" + note); !os.IsNotExist(err) {
			t.Errorf("%s is left over: %v", note, err)
		}
	}
}

// walk starts one run for each moment of each step, and kills the server at that moment.
func walk(t *testing.T, s *devServer, moments int) {
	s.start()
	want := map[string]int{}
	for step, walk := range []func(u *user, name string,
		after time.Duration) string{whileAsking, whileWaiting, whileSending} {
		for i := range moments {
			name := fmt.Sprintf("Mail %d of step %d", i, step)
			u := s.signIn()
			run := walk(u, name, time.Duration(i)*6*time.Millisecond)
			if got := u.ended(run); got != "completed" {
				t.Errorf("%s: the run is %s", name, got)
			}
			want["bob@x.org: "+name]++
		}
	}
	got := s.mailbox()
	for mail := range want {
		if got[mail] != 1 {
			t.Errorf("%q was sent %d times", mail, got[mail])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d e-mails were approved, and the mailbox holds %v", len(want), got)
	}
}

// whileAsking kills the server during the request, and then repeats the request with its idempotency key.
func whileAsking(u *user, name string, after time.Duration) string {
	cut := make(chan struct{})
	go func() {
		defer close(cut)
		_, _ = u.ask(name) // it is interrupted, or answered just before
	}()
	time.Sleep(after)
	u.killAndStart()
	<-cut
	run := u.mustAsk(name)
	u.approve(run)
	return run
}

// whileWaiting kills the server while the approval waits.
func whileWaiting(u *user, name string, after time.Duration) string {
	run := u.mustAsk(name)
	time.Sleep(after)
	u.killAndStart()
	u.approve(run)
	return run
}

// whileSending kills the server right after it has answered the approval: before, during or after the sending.
func whileSending(u *user, name string, after time.Duration) string {
	run := u.mustAsk(name)
	u.approve(run)
	time.Sleep(after)
	u.killAndStart()
	return run
}

// user is a local user with a token.
type user struct {
	*devServer
	testkit.Client
}

func (s *devServer) signIn() *user {
	s.t.Helper()
	a, err := testkit.Connect(nil, s.url, "")(s.t.Context(), "POST", "/dev/token",
		`{"uid":"ana","email":"ana@example.com"}`)
	var got struct{ Token string }
	if err := errors.Join(err, json.Unmarshal(a.Body, &got)); err != nil {
		s.t.Fatal(err)
	}
	return s.as(got.Token)
}

func (s *devServer) as(token string) *user { return &user{s, testkit.Connect(nil, s.url, token)} }

func (u *user) killAndStart() {
	u.t.Helper()
	u.kill()
	u.start()
}

func (u *user) ask(name string) (run string, err error) {
	a, err := u.Ask(u.t.Context(), fmt.Sprintf("email bob@x.org subject '%s' saying 'hello'", name),
		"Idempotency-Key", strings.ReplaceAll(name, " ", "-"))
	return a.RunID, accepted(a, err)
}

func accepted(a testkit.Answer, err error) error {
	if err == nil && a.HTTP != http.StatusOK {
		err = fmt.Errorf("%d %s", a.HTTP, a.Body)
	}
	return err
}

func (u *user) mustAsk(name string) string {
	u.t.Helper()
	run, err := u.ask(name)
	if err != nil {
		u.t.Fatal(err)
	}
	return run
}

// approve approves as soon as the run waits.
func (u *user) approve(run string) {
	u.t.Helper()
	var a testkit.Answer
	u.until("the run asks", func() (so bool) {
		var err error
		a, err = u.Run(u.t.Context(), run)
		return err == nil && len(a.Approvals) == 1
	})
	if err := accepted(u.Resolve(u.t.Context(), a.Approvals[0], "approve_once")); err != nil {
		u.t.Fatal(err)
	}
}

func (u *user) ended(run string) (status string) {
	u.t.Helper()
	u.until("the run ends", func() bool {
		a, err := u.Ended(u.t.Context(), run)
		if err != nil {
			return false
		}
		status = a.Status
		return status == "completed" || status == "failed"
	})
	return status
}

func (u *user) until(what string, so func() bool) {
	u.t.Helper()
	defer u.tell()
	await.That(u.t, what, so)
}

// TestServerAfterItsParent kills the `go run` that started the server. The server, which gets no signal, must end too
// and free its port.
func TestServerAfterItsParent(t *testing.T) {
	s := newDevServer(t)
	parent := exec.CommandContext(t.Context(), "sleep", "600")
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	s.env = []string{fmt.Sprintf("DEV_PARENT=%d", parent.Process.Pid)}
	s.start()
	if err := parent.Process.Kill(); err != nil { // no process waits for it: a zombie has ended
		t.Fatal(err)
	}
	_ = s.process.Wait() // "signal: killed"
	s.process = nil
	if _, err := http.Get(s.url + "/health"); err == nil {
		t.Error("it still serves")
	}
	_ = parent.Wait()
}
