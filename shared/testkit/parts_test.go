package testkit_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit/browsertest"
	"github.com/countersign-run/countersign/shared/testkit/chatclients"
	"github.com/countersign-run/countersign/shared/testkit/emulate"
	"github.com/countersign-run/countersign/shared/testkit/emulators"
	"github.com/countersign-run/countersign/shared/testkit/gcsserver"
	"github.com/countersign-run/countersign/shared/testkit/mcpservers"
	"github.com/countersign-run/countersign/shared/testkit/podman"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
	"github.com/countersign-run/countersign/shared/testkit/sshd"
)

// inBroken is the environment variable with the name of the part that TestBrokenPartInChild uses.
const inBroken = "IN_BROKEN"

// A broken part is installed but does not work.
type broken struct {
	part realpart.Part
	take func(t *testing.T)
	says string                                // the part's message
	env  func(t *testing.T, dir string) string // a variable that breaks the part; dir does not exist yet
}

var parts = map[string]broken{
	"podman runs no container": {realpart.Podman, aContainer, "no permission for a container", before("podman",
		`case " $* " in *" run "*) echo no permission for a container >&2; exit 126;; esac`)},
	"podman does not start": {realpart.Podman, aContainer, "podman ended: no namespaces",
		before("podman", "echo no namespaces >&2; exit 125")},
	"sshd refuses": {realpart.SSHD, aHost, "not allowed because listed in DenyUsers",
		before("sshd", `set -- "$@" -o "DenyUsers=*"`)},
	"sshd ends": {realpart.SSHD, aHost, "no privileges", before("sshd", "echo no privileges >&2; exit 255")},
	"Chromium ends": {realpart.Chromium, func(t *testing.T) { browsertest.New(t) }, "no sandbox",
		func(t *testing.T, dir string) string {
			return "CHROMIUM=" + script(t, dir, "chromium", "echo no sandbox >&2; exit 1")
		}},
	"Node ends": {realpart.Node, func(t *testing.T) { browsertest.Node(t) }, "no such instruction",
		before("node", "echo no such instruction >&2; exit 132")},
	"MCP servers do not load": {realpart.MCPServers, func(t *testing.T) { mcpservers.Everything(t) },
		"Cannot find module", before("node", "echo Cannot find module >&2; exit 1")},
	"Firestore refuses": {realpart.Emulators, func(t *testing.T) { emulators.Firestore(t) }, "out of memory",
		func(t *testing.T, _ string) string { return "FIRESTORE_EMULATOR_HOST=" + refuses(t) }},
	"Pub/Sub refuses": {realpart.Emulators, func(t *testing.T) { emulators.PubSub(t) }, "out of memory",
		func(t *testing.T, _ string) string { return "PUBSUB_EMULATOR_HOST=" + refuses(t) }},
	"emulate ends": {realpart.Emulate, func(t *testing.T) { emulate.Start(t) },
		"the program ended before it answered", func(t *testing.T, dir string) string {
			script(t, filepath.Join(dir, "node_modules", ".bin"), "node", "exit 1")
			script(t, filepath.Join(dir, "node_modules", "emulate", "dist"), "index.js", "")
			return "EMULATE_DIR=" + dir
		}},
	"the server of Cloud Storage ends": {realpart.GCSServer, func(t *testing.T) { gcsserver.Start(t) },
		"no memory for buckets", func(t *testing.T, dir string) string {
			script(t, dir, "fake-gcs-server", "echo no memory for buckets >&2; exit 1")
			return "GCS_SERVER_DIR=" + dir
		}},
	"no client is bundled": {realpart.ChatClients, func(t *testing.T) { chatclients.Bundle(t, "x", "y") },
		"wrong machine", func(t *testing.T, dir string) string {
			modules, last := filepath.Join(dir, "node_modules"), filepath.FromSlash(chatclients.CopilotKit)
			script(t, filepath.Join(modules, filepath.Dir(last)), filepath.Base(last), "")
			script(t, filepath.Join(modules, "@esbuild", "linux-x64", "bin"), "esbuild",
				"echo wrong machine >&2; exit 126")
			return "CHAT_CLIENTS_DIR=" + dir
		}},
}

func aContainer(t *testing.T) { podman.Start(t) }

func aHost(t *testing.T) { sshd.Start(t, sshd.Options{}) }

// TestBrokenParts runs tests with installed parts that do not work. Each test is skipped with the part's name and
// message, or fails if REQUIRE_ALL is 1.
func TestBrokenParts(t *testing.T) {
	realpart.Long(t, "it starts a process for each part")
	for name, c := range parts {
		t.Run(name, func(t *testing.T) {
			env := c.env(t, filepath.Join(t.TempDir(), "broken"))
			for _, required := range []string{"", "1"} {
				cmd := exec.Command(os.Args[0], "-test.run=^TestBrokenPartInChild$", "-test.v")
				cmd.Env = append(os.Environ(), inBroken+"="+name, "REQUIRE_ALL="+required, env)
				out, err := cmd.CombinedOutput()
				want := "--- SKIP: TestBrokenPartInChild"
				if required == "1" {
					want = "--- FAIL: TestBrokenPartInChild"
				}
				said := string(out)
				if (err != nil) != (required == "1") || !strings.Contains(said, want) ||
					!strings.Contains(said, c.says) ||
					!strings.Contains(said, c.part.Name+": it does not work here: ") {
					t.Errorf("REQUIRE_ALL=%s: %v\n%s", required, err, said)
				}
			}
		})
	}
}

// TestBrokenPartInChild uses one part, in a process that TestBrokenParts starts.
func TestBrokenPartInChild(t *testing.T) {
	if c, ok := parts[os.Getenv(inBroken)]; ok {
		c.take(t)
	}
}

// before makes lines of a shell run before the named program, and returns the PATH.
func before(name, lines string) func(t *testing.T, dir string) string {
	return func(t *testing.T, dir string) string {
		t.Helper()
		program, err := exec.LookPath(name)
		if err != nil {
			if program, err = exec.LookPath(filepath.Join("/usr/sbin", name)); err != nil {
				t.Skip(err)
			}
		}
		script(t, dir, name, lines+"\nexec "+program+` "$@"`)
		return "PATH=" + dir + ":" + os.Getenv("PATH")
	}
}

// script writes a shell script, and returns its path.
func script(t *testing.T, dir, name, lines string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+lines+"\n"), 0o700); err != nil { // #nosec G306 -- it is run
		t.Fatal(err)
	}
	return path
}

// refuses returns the address of a server that answers each request with an error.
func refuses(t *testing.T) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = fmt.Fprint(w, "out of memory")
	}))
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}
