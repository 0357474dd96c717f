package flaky

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/testkit/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }

// tests is the test file of a module. One test fails only in the second round, and each round is recorded in a file.
const tests = `package moon

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
)

func TestWanes(t *testing.T) {
	before, _ := os.ReadFile("rounds")
	if err := os.WriteFile("rounds", fmt.Appendf(before, "%d %v\n", runtime.GOMAXPROCS(0), testing.Short()), 0o600); err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(before), "\n") == 1 {
		t.Error("it is new")
	}
}

func TestShines(*testing.T) {}
`

// module creates a module of one package with these files, and changes to its root folder.
func module(t *testing.T, files map[string]string) {
	root := t.TempDir()
	files["go.mod"] = "module example.com/moon\n\ngo 1.24\n"
	for name, text := range files {
		file := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(root)
}

// prove runs the proof with the arguments.
func prove(args string) (code int, printed string) {
	var out strings.Builder
	code = proof.Main(strings.Fields("flaky "+args), &out, &out, Proof())
	return code, out.String()
}

// TestFlakyTestFound expects the failure with its round, seed and line.
func TestFlakyTestFound(t *testing.T) {
	module(t, map[string]string{"phase/phase_test.go": tests, "bare/bare.go": "package bare\n"})
	code, printed := prove("-n 3 -short -seed 7")
	if code != proof.Found {
		t.Fatalf("exit code %d:\n%s", code, printed)
	}
	for _, want := range []string{"round 1 of 3: GOMAXPROCS=1, -shuffle=7, 1 packages, 0 failures, in ",
		"FINDING phase TestWanes: in round 2: GOMAXPROCS=2 CHANGES_LATE=1000 go test -count=1 -shuffle=8 -short " +
			"./phase\n    phase_test.go:17: it is new\n",
		"round 2 of 3: GOMAXPROCS=2 CHANGES_LATE=1000, -shuffle=8, 1 packages, 1 failures, in ",
		"phase TestWanes failed in 1 of 3 rounds: 2\n", "flaky: 1 findings, 2 held, 0 skipped"} {
		if !strings.Contains(printed, want) {
			t.Errorf("the report lacks %q:\n%s", want, printed)
		}
	}
	if rounds, err := os.ReadFile("phase/rounds"); string(rounds) != "1 true\n2 true\n1 true\n" {
		t.Errorf("the package's rounds are %q, %v", rounds, err)
	}
}

// early is a test file of a module. The goroutine says that it is done before it is. One test waits for it on the clock
// of the machine, and the other one in a bubble, where nothing delays.
const early = `package moon

import (
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func rises(t *testing.T, pause time.Duration) {
	var up atomic.Bool
	said := make(chan bool)
	go func() {
		said <- true
		up.Store(true)
	}()
	<-said
	time.Sleep(pause)
	if !up.Load() {
		t.Error("it is not up")
	}
}

func TestRises(t *testing.T) { rises(t, 50*time.Millisecond) }

func TestRisesInBubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { rises(t, 50*time.Millisecond) })
}
`

// TestSignalBeforeTheFact expects that a delay after the signal fails the test, that the report names the delay, and
// that the command of the report finds it again.
func TestSignalBeforeTheFact(t *testing.T) {
	module(t, map[string]string{"phase/phase_test.go": early})
	for args, want := range map[string][]string{
		"-n 1 -at phase_test.go:14:": {"FINDING phase TestRises: in round 1: go run ./scripts/prove flaky -n 1 -seed ",
			" -at 'phase_test.go:14:' ./phase\n    phase_test.go:20: it is not up\n" +
				"    delayed at phase/phase_test.go:14:15\n",
			"flaky: 1 findings, 0 held, 0 skipped"},
		"-n 1 -at phase_test.go:15:": {"flaky: 0 findings, 1 held, 0 skipped"},
		"-n 5 -delays -seed 5": {"FINDING phase TestRises: in round 4: go run ./scripts/prove flaky -n 1 -seed 8 " +
			"-delays ./phase\n", "    delayed at phase/phase_test.go:14:15\n", "failed in 1 of 5 rounds: 4\n"},
		"-n 1 -delays -seed 8": {"FINDING phase TestRises: in round 1: ",
			"    delayed at phase/phase_test.go:14:15\n"},
	} {
		if _, printed := prove(args); !containsAll(printed, want) {
			t.Errorf("%s prints\n%s\nand not all of %q", args, printed, want)
		}
	}
}

func containsAll(printed string, want []string) bool {
	return !slices.ContainsFunc(want, func(text string) bool { return !strings.Contains(printed, text) })
}

// TestPoints compares the changed text of a function with the calls that it should have.
func TestPoints(t *testing.T) {
	const text = `package x // a package

func f(c chan int, mu *sync.Mutex) error {
	defer mu.Unlock()
	go func() { c <- 1 }()
	all.Go(func() { run() })
	if !yield(<-c) { // for a reason
		return nil
	}
	if x := <-c; x > 0 {
		return nil
	} else {
		close(c)
	}
	for range all() {}
	select {
	case c <- 1:
	default:
		f(func() { v, ok := <-c })
	}
	return Commit()
}
`
	file := filepath.Join(t.TempDir(), "x.go")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	d := &delays{}
	got, err := d.change(tree{Path: "moon", Dir: filepath.Dir(file)}, file)
	if err != nil {
		t.Fatal(err)
	}
	want := `package x; import late_ "moon/late" // a package

func f(c chan int, mu *sync.Mutex) error {
	defer late_.At(0); defer mu.Unlock()
	go func() { late_.At(1); c <- 1; late_.At(2) }(); late_.At(3)
	all.Go(func() { late_.At(4); run() }); late_.At(5)
	if !yield(<-c) { // for a reason
		return nil
	}; late_.At(6)
	if x := <-c; x > 0 {
		return nil
	} else {
		close(c); late_.At(7)
	}
	for range all() { late_.At(8);}
	select {
	case c <- 1: late_.At(9);
	default:
		f(func() { v, ok := <-c; late_.At(10) })
	}
	return Commit()
}
`
	for i, point := range d.points {
		want = strings.Replace(want, fmt.Sprintf("At(%d)", i), fmt.Sprintf("At(%q)", point), 1)
	}
	if string(got) != want {
		t.Errorf("the changed text is\n%s\nwant\n%s", got, want)
	}
	if first, last := d.points[0], d.points[10]; len(d.points) != 11 || first != "x.go:4:2" || last != "x.go:19:26" {
		t.Errorf("the points are %q", d.points)
	}
}

// TestTestsThatCannotRun checks that tests which cannot run are distinguished from tests that fail.
func TestTestsThatCannotRun(t *testing.T) {
	module(t, map[string]string{"half/half_test.go": "package half\n\nvar x int = \"\"\n",
		"bare/bare.go": "package bare\n"})
	for args, want := range map[string]struct {
		code int
		says string
	}{
		"-n 1 ./half":  {proof.Found, "FINDING half: exit status 1\n"},
		"-n 1 ./bare":  {proof.Misused, "none of these packages has tests"},
		"-n 1 ./venus": {proof.Misused, "venus"},
	} {
		if code, printed := prove(args); code != want.code || !strings.Contains(printed, want.says) {
			t.Errorf("%s: exit code %d: %s", args, code, printed)
		}
	}
}
