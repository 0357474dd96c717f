package crash

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/testkit/emulators"
	"github.com/countersign-run/countersign/shared/testkit/leaktest"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

func TestMain(m *testing.M) { leaktest.Main(m, func() error { return os.RemoveAll(programs) }) }

// programs is the folder of the programs that these tests build.
var programs string

// program builds the worker program once for all tests. It has no race detector, which would take two thirds of the
// time, so the tests interrupt the same code as the proof.
var program = sync.OnceValues(func() (file string, err error) {
	if programs, err = os.MkdirTemp("", "crash-workers"); err != nil {
		return "", err
	}
	file = filepath.Join(programs, "prove")
	if said, err := exec.Command("go", "build", "-o", file, "..").CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, said)
	}
	return file, nil
})

// prove runs the proof with the options, and returns the report.
func prove(t *testing.T, o options) *proof.Run {
	t.Helper()
	realpart.Long(t, "starts and kills many processes")
	var err error
	if o.program, err = program(); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	r := proof.Trial("crash", 20261121, &out)
	t.Logf("seed %d", r.Seed)
	err = try(t.Context(), o, r, t.TempDir())
	if errors.Is(err, proof.ErrAbsent) {
		realpart.SSHD.Absent(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + out.String())
	if r.Findings() > 0 {
		t.Errorf("%d findings", r.Findings())
	}
	return r
}

// onProviders and onHosts hold the counted points, so that tests with the same scenarios count them once.
var onProviders, onHosts counted

func matrixOn(t *testing.T, store string, kills int, points *counted) {
	r := prove(t, options{kills: kills, store: store, workers: 8, counted: points})
	if n, points := r.Counted(countStruck), r.Counted(countPoints); n < kills*8/10 || points < 500 {
		t.Errorf("%d of %d workers were interrupted at %d points: too few to prove anything", n, kills, points)
	}
}

func TestMatrix(t *testing.T) { matrixOn(t, "embedded", realpart.Trials(36, 240), &onProviders) }

func TestMatrixOnFirestore(t *testing.T) {
	realpart.Emulators.Take(t)
	e, err := emulators.StartFirestore(t.Context(), io.Discard)
	if errors.Is(err, emulators.ErrAbsent) {
		realpart.Emulators.Absent(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
	})
	t.Setenv("FIRESTORE_EMULATOR_HOST", e.Addr)
	matrixOn(t, "firestore", realpart.Trials(16, 60), nil)
}

// TestActs interrupts workers while plans act (pull requests, commits, containers and scripts), and while a tool of an
// operator's MCP server is called.
func TestActs(t *testing.T) {
	kills := realpart.Trials(28, 200)
	r := prove(t, options{kills: kills, store: "embedded", workers: 8,
		of: []kind{pull, commit, patch, create, script, onMCPServer},
		only: func(p plan) bool {
			name := p.scenario.steps[p.step].name
			return name == deliver.name || name == confirm.name
		}})
	if n := r.Counted(countStruck); n < kills*7/10 {
		t.Errorf("%d of %d workers were interrupted: too few to prove anything", n, kills)
	}
}

// TestEdits interrupts workers while plans edit a file in a container. A worker that wakes after another has made the
// edit must not make it again.
func TestEdits(t *testing.T) {
	kills := realpart.Trials(16, 120)
	r := prove(t, options{kills: kills, store: "embedded", workers: 8, of: []kind{edit}, only: func(p plan) bool {
		name := p.scenario.steps[p.step].name
		return name == deliver.name || name == confirm.name || name == decide("approve_once").name
	}})
	if n := r.Counted(countStruck); n < kills*7/10 {
		t.Errorf("%d of %d workers were interrupted: too few to prove anything", n, kills)
	}
}

// TestFetches interrupts workers while plans fetch the dependencies of a lock file. The volume is filled once, and a
// worker that wakes later does not remove it.
func TestFetches(t *testing.T) {
	kills := realpart.Trials(12, 60)
	r := prove(t, options{kills: kills, store: "embedded", workers: 8, of: []kind{fetch}, only: func(p plan) bool {
		name := p.scenario.steps[p.step].name
		return name == deliver.name || name == confirm.name || name == decide("approve_once").name
	}})
	if n := r.Counted(countStruck); n < kills*7/10 {
		t.Errorf("%d of %d workers were interrupted: too few to prove anything", n, kills)
	}
}

// TestWaits interrupts workers of sessions that wait for checks: while the workers look at the checks, and after the
// checks have ended.
func TestWaits(t *testing.T) {
	kills := realpart.Trials(8, 12)
	r := prove(t, options{kills: kills, store: "embedded", workers: 8, of: []kind{issue}, only: func(p plan) bool {
		return p.scenario.waits() && p.scenario.steps[p.step].ready != nil
	}})
	if n := r.Counted(countStruck); n < kills*7/10 {
		t.Errorf("%d of %d workers were interrupted: too few to prove anything", n, kills)
	}
}

// TestCommands interrupts workers that run commands on OpenSSH's server, and interrupts that server.
func TestCommands(t *testing.T) {
	kills := realpart.Trials(12, 48)
	r := prove(t, options{kills: kills, store: "embedded", workers: 8, on: hosts, counted: &onHosts})
	if n, points := r.Counted(countStruck), r.Counted(countPoints); n < kills*7/10 || points < 300 {
		t.Errorf("%d of %d workers were interrupted at %d points: too few to prove anything", n, kills, points)
	}
}

// TestUploads interrupts workers that put files on a host, and interrupts that host. Each file is created once.
func TestUploads(t *testing.T) {
	kills := realpart.Trials(6, 24)
	r := prove(t, options{kills: kills, store: "embedded", workers: 8, on: hosts, of: []kind{upload}})
	if n := r.Counted(countStruck); n < kills*7/10 {
		t.Errorf("%d of %d workers were interrupted: too few to prove anything", n, kills)
	}
}

// TestCommandsOnAHostThatForgets kills workers while commands run on a host. The host then loses its records of the
// commands.
func TestCommandsOnAHostThatForgets(t *testing.T) {
	forgot := func(p plan) bool {
		return p.scenario.name == "approve" && p.scenario.steps[p.step].name == deliver.name && p.variant == plain &&
			forgets(p.fault)
	}
	prove(t, options{kills: realpart.Trials(8, 16), store: "embedded", workers: 8, on: hosts, only: forgot,
		counted: &onHosts})
}

// TestReminders interrupts workers while they mail users about waiting approvals.
func TestReminders(t *testing.T) {
	kills := realpart.Trials(8, 24)
	r := prove(t, options{kills: kills, store: "embedded", workers: 8, of: []kind{reminded}, only: func(p plan) bool {
		return strings.HasPrefix(p.scenario.steps[p.step].name, reminderStep)
	}})
	if n := r.Counted(countStruck); n < kills*7/10 {
		t.Errorf("%d of %d were struck: too few to say anything", n, kills)
	}
}

// TestRandomMoments kills workers at random moments, which follow from the seed.
func TestRandomMoments(t *testing.T) {
	prove(t, options{kills: realpart.Trials(8, 40), store: "embedded", workers: 8, anywhen: true,
		counted: &onProviders})
}

// TestTrialsOfSeed checks that a seed chooses nearly the same trials if a worker passed a point more or less during the
// count.
func TestTrialsOfSeed(t *testing.T) {
	var plans []plan
	for n := range 200 {
		for _, v := range variants {
			plans = append(plans, plan{scenario: scenarios[n%len(scenarios)], kind: kinds[n%len(kinds)],
				variant: v, point: n})
		}
	}
	choose := func(seed uint64, plans []plan) map[string]bool {
		m := matrix{Run: proof.Trial("crash", seed, io.Discard), options: options{kills: 100}}
		out := map[string]bool{}
		for _, p := range m.choose(plans) {
			out[p.String()] = true
		}
		return out
	}
	first, again, other := choose(7, plans), choose(7, plans[8:]), choose(8, plans)
	same := func(a, b map[string]bool) (n int) {
		for p := range a {
			if b[p] {
				n++
			}
		}
		return n
	}
	if n := same(first, again); n < 95 {
		t.Errorf("%d of 100 trials are the same", n)
	}
	if n := same(first, other); n > 20 {
		t.Errorf("%d of 100 trials are the same with another seed", n)
	}
}
