// Package realpart lists the real parts that tests need and that a machine may lack: their names, and how to install
// each. If a part is missing or does not work, the test is skipped, or fails if REQUIRE_ALL is 1; `go run
// ./scripts/prove skips` lists skipped tests. With -short, tests that need a slow part are skipped. The package also
// decides how many trials a test makes: a few, or all if ALL_TRIALS is 1.
package realpart

import (
	"flag"
	"os"
	"strconv"
	"strings"
)

// Part is a real program or service that tests use in place of a simulated one.
type Part struct {
	Name    string
	Install string // a command for a shell, or what to do instead
	slow    bool   // it takes seconds to start
}

// ByScript is the command that installs most parts on Debian and sets the variables that name them for tests.
const ByScript = `eval "$(.ci/install)"`

// The programs and services that tests need.
var (
	Shell       = Part{Name: "a POSIX shell and curl", Install: ByScript}
	Ps          = Part{Name: "ps and script", Install: ByScript}
	SSHD        = Part{Name: "OpenSSH's server and login shells", Install: ByScript, slow: true}
	Strace      = Part{Name: "strace, as root", Install: ByScript, slow: true}
	Podman      = Part{Name: "Podman, as root", Install: ByScript, slow: true}
	Chromium    = Part{Name: "Chromium, Node and playwright-core", Install: ByScript, slow: true}
	Node        = Part{Name: "Node, TypeScript", Install: ByScript, slow: true}
	Jay         = Part{Name: "jay-stack's packages", Install: ByScript, slow: true}
	Emulate     = Part{Name: "emulate, an emulator of OAuth", Install: ByScript, slow: true}
	GCSServer   = Part{Name: "fake-gcs-server, with Cloud Storage's API", Install: ByScript}
	MCPServers  = Part{Name: "the official MCP servers", Install: ByScript, slow: true}
	ChatClients = Part{Name: "chat clients of other makers", Install: ByScript, slow: true}
	Description = Part{Name: "GitHub's description of its API", Install: ByScript}
	Emulators   = Part{Name: "the Firestore and Pub/Sub emulators", slow: true,
		Install: "gcloud components install cloud-firestore-emulator pubsub-emulator"}
	Terraform = Part{Name: "Terraform, and a stand-in for its Google provider", slow: true,
		Install: "install terraform, and set TERRAFORM_CHECK_DIR; `go run ./scripts/terraform` needs no stand-in"}
	Recorded  = Part{Name: "recorded responses of Gemini", Install: "they are not published; set GEMINI_RECORDED_DIR"}
	Discovery = Part{Name: "Google's discovery documents", Install: "go mod download google.golang.org/api"}
)

// All lists the parts, in the order of reports.
var All = []Part{Shell, Ps, SSHD, Strace, Podman, Chromium, Node, Jay, Emulate, GCSServer, MCPServers, ChatClients,
	Description, Emulators, Terraform, Recorded, Discovery}

// T is a test, or a program that acts as one.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

// Owner owns a program that serves tests: a test, or a trial of the part. The program ends with it.
type Owner interface {
	T
	Errorf(format string, args ...any)
	TempDir() string
	Cleanup(func())
}

// The beginnings of the messages of skipped tests.
const (
	absent = "absent: "
	long   = "left out by -short: "
)

// Absent skips a test because the part is missing, or fails it if REQUIRE_ALL is 1. why names the missing thing.
func (p Part) Absent(t T, why string) {
	t.Helper()
	if os.Getenv("REQUIRE_ALL") == "1" {
		t.Fatalf("%s: %s, and REQUIRE_ALL is set", p.Name, why)
	}
	t.Skipf("%s%s: %s", absent, p.Name, why)
}

// Take skips a test with -short if the part is slow. Call it before looking for the part.
func (p Part) Take(t T) {
	t.Helper()
	if p.slow {
		Long(t, "it takes "+p.Name)
	}
}

// Long skips a test with -short, because the test itself is slow.
func Long(t T, what string) {
	t.Helper()
	if Short() {
		t.Skipf("%s%s", long, what)
	}
}

// Trials returns all if ALL_TRIALS is 1, as in CI, and otherwise few. It is for tests that make many trials of the same
// kind.
func Trials[T any](few, all T) T {
	if os.Getenv("ALL_TRIALS") == "1" {
		return all
	}
	return few
}

// TrialsUnraced is like [Trials] for a test in which one goroutine runs at a time. With the race detector, which would
// take most of the time, it returns a few: more trials would show the detector the same code again. .ci/run makes all
// trials of such a test without the detector.
func TrialsUnraced[T any](few, all T) T {
	if raced {
		return few
	}
	return Trials(few, all)
}

// Unraced skips a test with the race detector. It is for tests in which one goroutine computes for long, or requests
// come one after the other. The detector would take most of the time, and checks the same code in other tests. .ci/run
// runs such a test without the detector.
func Unraced(t T) {
	t.Helper()
	if raced {
		t.Skipf("one goroutine runs at a time; it is tested without the race detector")
	}
}

// AllTrials skips a test that belongs to all trials, if only a few trials are made.
func AllTrials(t T) {
	t.Helper()
	if !Trials(false, true) {
		t.Skipf("one of all trials, which ALL_TRIALS=1 makes")
	}
}

// AtOnce sets the number of parallel tests of a package, unless the command sets it. It is for tests that wait more
// than they compute. TestMain calls it.
func AtOnce(n int) {
	if err := flag.Set("test.parallel", strconv.Itoa(n)); err != nil {
		panic(err)
	}
}

// Short reports whether this is a test with -short. Unlike testing.Short, any program may call it.
func Short() bool {
	f := flag.Lookup("test.short")
	return f != nil && f.Value.String() == "true"
}

// Lacks returns the missing part that the message of a skipped test names, and whether it names one.
func Lacks(said string) (Part, bool) {
	for _, p := range All {
		if strings.Contains(said, absent+p.Name+": ") {
			return p, true
		}
	}
	return Part{}, false
}

// LeftOut reports whether the message of a skipped test gives -short as the reason.
func LeftOut(said string) bool { return strings.Contains(said, long) }
