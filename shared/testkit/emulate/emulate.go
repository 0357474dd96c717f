// Package emulate runs, for tests of linked accounts, an independent emulator of Google: the npm package emulate 0.12.2
// (vercel-labs, Apache-2.0) with its OAuth endpoints, and one method of its Calendar that uses the tokens. Its own
// behaviour is at Direct. A reverse proxy in front of it, at URL, corrects it where it is more lenient than Google's
// documentation, and makes calls fail on demand:
//
//   - an access token that was never issued, or whose consent was revoked, is refused with 401, and a missing scope
//     with 403; the emulator accepts any token as its first user's, and revoked ones too
//   - other methods than events.list are answered with 404: its Gmail and Calendar have less of Google's than the local
//     one (package fakegoogle), which follows Google's discovery documents
//
// The emulator's consent pages have no checkboxes for scopes and ignore earlier grants (include_granted_scopes).
package emulate

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	_ "embed"

	"github.com/countersign-run/countersign/shared/testkit/child"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

// The users and clients of the emulator's seed.
const (
	User         = "ada@example.com"
	ClientID     = "countersign-test"
	ClientSecret = "not-a-secret"
	RedirectURL  = "http://127.0.0.1:8080/api/agent/connections/google/callback"
)

//go:embed testdata/seed.yaml
var seed []byte

// endWithStdin ends the emulator when this process ends, for whatever reason and on each system: the kernel then closes
// the pipe that the emulator reads.
const endWithStdin = `data:text/javascript,process.stdin.on("end",()=>process.exit()).resume()`

// An Emulator is a running emulator, with an empty calendar of User.
type Emulator struct {
	URL    string // of the proxy, without a trailing slash
	Direct string // of the emulator itself

	t       realpart.Owner
	forward http.Handler

	mu     sync.Mutex
	grants map[string]grant // by access token
	faults map[string][]Fault
	calls  map[string]int
}

// answers starts an emulator and waits for an answer. If that fails, the test is skipped.
var answers = realpart.Emulate.Tried(func(t *realpart.Trial) { start(t) })

// Start starts an emulator for the test, from the directory that EMULATE_DIR names. npm must have installed emulate
// 0.12.2 and Node 22 or later there. If they are missing, the test is skipped, or fails if REQUIRE_ALL is 1.
func Start(t realpart.Owner) *Emulator {
	t.Helper()
	installed(t)
	answers(t)
	return start(t)
}

func start(t realpart.Owner) *Emulator {
	t.Helper()
	node, script := installed(t)
	e := &Emulator{t: t, grants: map[string]grant{}, faults: map[string][]Fault{}, calls: map[string]int{}}
	proxy := httptest.NewUnstartedServer(e.routes())
	t.Cleanup(proxy.Close)
	e.URL = "http://" + proxy.Listener.Addr().String()
	e.Direct = launch(t, node, script, "google", "/.well-known/openid-configuration", seed, "--base-url", e.URL)
	e.forward = forwarder(e.Direct)
	proxy.Start()
	t.Cleanup(e.checkFaults)
	return e
}

// Node returns the Node of version 22 or later that Start uses.
func Node(t realpart.Owner) string {
	t.Helper()
	node, _ := installed(t)
	return node
}

// NodePath returns the path of that Node.
func NodePath() string {
	return filepath.Join(os.Getenv("EMULATE_DIR"), "node_modules", ".bin", "node")
}

// installed returns the paths of Node and the emulator.
func installed(t realpart.Owner) (node, script string) {
	t.Helper()
	realpart.Emulate.Take(t)
	dir := os.Getenv("EMULATE_DIR")
	node = NodePath()
	script = filepath.Join(dir, "node_modules", "emulate", "dist", "index.js")
	for _, file := range []string{node, script} {
		if _, err := os.Stat(file); dir == "" || err != nil {
			realpart.Emulate.Absent(t, "npm's emulate@0.12.2 and Node 22 are not installed where EMULATE_DIR says")
		}
	}
	return node, script
}

// launch starts a service's process on a free loopback port and waits until the service answers at the path.
func launch(t realpart.Owner, node, script, service, probe string, seed []byte, more ...string) (base string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "seed.yaml")
	if err := os.WriteFile(file, seed, 0o600); err != nil {
		t.Fatalf("the seed: %v", err)
	}
	return child.Serve(t, probe, func(port string) *exec.Cmd {
		cmd := exec.Command(node, append([]string{"--import", endWithStdin, script, "start", "--host", "127.0.0.1",
			"--service", service, "--seed", file, "--port", port}, more...)...)
		cmd.Dir = dir
		if _, err := cmd.StdinPipe(); err != nil { // it stays open until Wait
			t.Fatalf("start Node: %v", err)
		}
		return cmd
	})
}
