package check_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/await"
	"github.com/countersign-run/countersign/shared/testkit/browsertest"
	"github.com/countersign-run/countersign/shared/testkit/freeport"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

// devServer is scripts/dev as its users start it, without configuration.
type devServer struct {
	t              *testing.T
	program, data  string
	addr, url, log string
	flags, env     []string
	dir            string // the folder where it runs; empty: this one
	process        *exec.Cmd
}

func newDevServer(t *testing.T, flags ...string) *devServer {
	t.Helper()
	realpart.Long(t, "it builds and starts the local server")
	dir := t.TempDir()
	program, err := built()
	if err != nil {
		t.Fatal(err)
	}
	s := &devServer{t: t, program: program, data: filepath.Join(dir, "data"),
		addr: net.JoinHostPort("127.0.0.1", freeport.For(t)), log: filepath.Join(dir, "log"), flags: flags}
	s.url = "http://" + s.addr
	t.Cleanup(s.kill)
	return s
}

// inBrowser runs a script of testdata in Chromium on a new server with these settings, in parallel with other tests.
// The server is killed and restarted when the script asks for it.
func inBrowser(t *testing.T, script string, env ...string) *devServer {
	t.Helper()
	t.Parallel()
	return drive(t, browsertest.New(t, "axe-core"), script, env...)
}

func drive(t *testing.T, browser *browsertest.Browser, script string, env ...string) *devServer {
	t.Helper()
	server := newDevServer(t)
	server.env = env
	server.start()
	browser.Run("testdata/"+script, server.url, server.restart)
	return server
}

// programs is the folder of the programs that the tests build. TestMain creates and removes it.
var programs string

// built builds scripts/dev once for all tests, and returns its path.
var built = sync.OnceValues(func() (program string, err error) {
	program = filepath.Join(programs, "dev")
	return program, build(program)
})

func build(program string, flags ...string) error {
	out, err := exec.Command("go", append(append([]string{"build"}, flags...), "-o", program, "../dev/local")...).
		CombinedOutput()
	if err != nil {
		return fmt.Errorf("scripts/dev does not build: %w\n%s", err, out)
	}
	return nil
}

// start starts the server on its data, and waits until it answers.
func (s *devServer) start() {
	s.t.Helper()
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer log.Close() // the process has its own copy
	s.process = exec.Command(s.program, append([]string{"-addr", s.addr}, s.flags...)...)
	s.process.Dir = s.dir
	s.process.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "DATA_DIR=" + s.data,
		"MAX_RUNS_PER_MINUTE=0"}, s.env...) // one user exceeds the limits
	s.process.Stdout, s.process.Stderr = log, log
	if err := s.process.Start(); err != nil {
		s.t.Fatal(err)
	}
	defer s.tell()
	await.That(s.t, "scripts/dev serves", func() bool {
		res, err := http.Get(s.url + "/health")
		return err == nil && res.Body.Close() == nil
	})
}

// restart kills the server and starts it again.
func (s *devServer) restart() {
	s.t.Helper()
	s.kill()
	s.start()
}

// tell logs the server's output, if the test has failed.
func (s *devServer) tell() {
	if s.t.Failed() {
		said, err := os.ReadFile(s.log)
		s.t.Logf("the server's log: %s%v", said, err)
	}
}

// stop stops the server normally.
func (s *devServer) stop() {
	s.t.Helper()
	if err := s.process.Process.Signal(os.Interrupt); err != nil {
		s.t.Fatal(err)
	}
	if err := s.process.Wait(); err != nil {
		s.t.Errorf("it did not end in good order: %v", err)
	}
	s.process = nil
}

// kill kills the server without warning, like a crash.
func (s *devServer) kill() {
	if s.process == nil {
		return
	}
	_ = s.process.Process.Kill()              // it may be dead already
	_ = s.process.Wait()                      // "signal: killed" is expected
	http.DefaultClient.CloseIdleConnections() // the next request must not go to the dead process
	s.process = nil
}

// mailbox counts the sent e-mails by recipient and subject.
func (s *devServer) mailbox() map[string]int {
	s.t.Helper()
	res, err := http.Get(s.url + "/dev/mailbox")
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	var box struct {
		Messages []struct {
			To      []string
			Subject string
		}
	}
	if err := json.NewDecoder(res.Body).Decode(&box); err != nil {
		s.t.Fatal(err)
	}
	count := map[string]int{}
	for _, m := range box.Messages {
		count[fmt.Sprintf("%s: %s", strings.Join(m.To, ","), m.Subject)]++
	}
	return count
}
