// Package realpart knows the real parts that tests stand on and a machine may lack: their names, and how each is
// installed. A test without one, or with one that does not work, is skipped, and `go run ./scripts/prove skips` lists
// it; where REQUIRE_ALL is 1 it fails. With -short a test is skipped that takes a part which is slow to start. The
// package also knows how much a test tries: a little, or all of it where ALL_TRIALS is 1.
package realpart

import (
	"flag"
	"os"
	"strconv"
	"strings"
)

// Part is a real part.
type Part struct {
	Name    string
	Install string // a command for a shell, or what to do instead
	slow    bool   // it takes seconds to start
}

// ByScript is the command that installs most parts on Debian and sets the variables that name them for tests.
const ByScript = `eval "$(.ci/install)"`

// The parts.
var (
	Shell       = Part{Name: "a POSIX shell and curl", Install: ByScript}
	Ps          = Part{Name: "ps and script", Install: ByScript}
	SSHD        = Part{Name: "OpenSSH's server and login shells", Install: ByScript, slow: true}
	Podman      = Part{Name: "Podman, as root", Install: ByScript, slow: true}
	Chromium    = Part{Name: "Chromium, Node and playwright-core", Install: ByScript, slow: true}
	Node        = Part{Name: "Node, TypeScript", Install: ByScript, slow: true}
	Jay         = Part{Name: "jay-stack's packages", Install: ByScript, slow: true}
	Emulate     = Part{Name: "emulate, an emulator of OAuth", Install: ByScript, slow: true}
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
var All = []Part{Shell, Ps, SSHD, Podman, Chromium, Node, Jay, Emulate, MCPServers, ChatClients, Description, Emulators,
	Terraform, Recorded, Discovery}

// T is a test, or a program that acts as one.
type T interface {
	Helper()
	Fatalf(format string, args ...any)
	Skipf(format string, args ...any)
}

// The beginnings of what a skipped test says.
const (
	absent = "absent: "
	long   = "left out by -short: "
)

// Absent skips a test that lacks the part, or fails it where REQUIRE_ALL is 1. why says what of it is missing.
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

// Long skips a test with -short, because of what it does.
func Long(t T, what string) {
	t.Helper()
	if Short() {
		t.Skipf("%s%s", long, what)
	}
}

// Trials returns what a test needs to make all of its trials where ALL_TRIALS is 1, and otherwise what it needs for a
// few: for one whose point is that much is tried, which is for CI and not for who waits.
func Trials[T any](few, all T) T {
	if os.Getenv("ALL_TRIALS") == "1" {
		return all
	}
	return few
}

// TrialsUnraced is [Trials] for a test in which one goroutine runs at a time. With the race detector, which would take
// most of the time, it returns a few: more trials would show the detector the same code again. .ci/run makes all trials
// of such a test without the detector.
func TrialsUnraced[T any](few, all T) T {
	if raced {
		return few
	}
	return Trials(few, all)
}

// AllTrials skips a test that is one of all trials, where a few are to be made.
func AllTrials(t T) {
	t.Helper()
	if !Trials(false, true) {
		t.Skipf("one of all trials, which ALL_TRIALS=1 makes")
	}
}

// AtOnce has so many of a package's tests run beside each other that say that they may, unless the command says
// otherwise: for those that wait more than they compute. It is for TestMain.
func AtOnce(n int) {
	if err := flag.Set("test.parallel", strconv.Itoa(n)); err != nil {
		panic(err)
	}
}

// Short reports whether this is a test with -short. Unlike testing.Short it may be asked by any program.
func Short() bool {
	f := flag.Lookup("test.short")
	return f != nil && f.Value.String() == "true"
}

// Lacks returns the part that a skipped test lacks by its own words, and whether it lacks one.
func Lacks(said string) (Part, bool) {
	for _, p := range All {
		if strings.Contains(said, absent+p.Name+": ") {
			return p, true
		}
	}
	return Part{}, false
}

// LeftOut reports whether a test was skipped for -short by its own words.
func LeftOut(said string) bool { return strings.Contains(said, long) }
