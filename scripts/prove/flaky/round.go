package flaky

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/base/subprocess"
)

// soaking is one run of the proof.
type soaking struct {
	*proof.Run
	options
	dir     string  // for files of the proof
	delayed *delays // nil: the cores are busy instead

	mu     sync.Mutex
	tests  []proof.Package
	binary map[string]string   // test binaries by package name
	failed map[string][]string // the rounds in which each test failed
}

// build builds a package's tests. A package that does not compile is a finding, and does not run.
func (s *soaking) build(ctx context.Context, p proof.Package, file string) {
	flags := s.flags()
	if s.delayed != nil {
		flags = append(flags, "-overlay="+s.delayed.overlay, "-vet=off") // vet requires the folder late
	}
	err := p.Build(ctx, file, flags...)
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		s.Finding(p.Name, "%v", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tests, s.binary[p.Name] = append(s.tests, p), file
}

// turn is one round: its number, its seed, and the environment variables of its tests, which the seed determines.
type turn struct {
	n    int
	seed uint64
	env  []string
}

func turnOf(n int, seed uint64) turn {
	t := turn{n: n, seed: seed + uint64(n) - 1}
	t.env = []string{fmt.Sprintf("GOMAXPROCS=%d", 2-t.seed%2)}
	switch t.seed % 3 { // for package browsertest
	case 2:
		t.env = append(t.env, "CHANGES_LATE=1000")
	case 0:
		t.env = append(t.env, "READS_LATE=1000")
	}
	return t
}

// round runs each package once.
func (s *soaking) round(ctx context.Context, n int) {
	began, t, before := time.Now(), turnOf(n, s.Seed), s.Counted("failures")
	calls := 1
	if s.delayed != nil {
		calls = 3 // tests mostly wait
	}
	each(s.tests, calls, func(_ int, p proof.Package) {
		printed, points, err := s.run(ctx, p, t)
		switch {
		case ctx.Err() != nil: // an interrupted run proves nothing
		case err != nil:
			s.keep(p, t, fmt.Sprintf("%s\n%v", printed, err), points)
		default:
			s.Held(p.Name, "in round %d", n)
		}
	})
	s.Note("round %d of %d: %s, -shuffle=%d, %d packages, %d failures, in %.0f s", n, s.rounds,
		strings.Join(t.env, " "), t.seed, len(s.tests), s.Counted("failures")-before, time.Since(began).Seconds())
}

// run runs the tests of a package as go test does, and returns their output and the points that delayed them. It kills
// processes that the tests left running.
func (s *soaking) run(ctx context.Context, p proof.Package, t turn) (printed string, points []string, err error) {
	file := filepath.Join(s.dir, fmt.Sprintf("%s.%d", strings.ReplaceAll(p.Name, "/", "_"), t.n))
	if s.delayed != nil {
		if err := s.delayed.choose(file, t.seed); err != nil {
			return "", nil, err
		}
	}
	cmd := exec.CommandContext(ctx, s.binary[p.Name], s.args(t.seed)...)
	cmd.Dir, cmd.WaitDelay = p.Dir, time.Minute
	cmd.Env = append(append(os.Environ(), t.env...), "PWD="+p.Dir, "LATE="+file)
	subprocess.Own(cmd)
	cmd.Cancel = func() error { subprocess.Kill(cmd.Process); return nil }
	out, err := cmd.CombinedOutput()
	if cmd.Process != nil {
		subprocess.Kill(cmd.Process)
	}
	return string(out), passed(file), err
}

// keep records the failures of a package in a round. The first failure of each test is a finding, with the points that
// delayed the round.
func (s *soaking) keep(p proof.Package, t turn, printed string, points []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range proof.Failures(printed) {
		of := strings.TrimSpace(p.Name + " " + f.Test)
		if len(s.failed[of]) == 0 {
			for _, point := range points {
				f.Lines = append(f.Lines, "    delayed at "+point)
			}
			s.Finding(of, "in round %d: %s\n%s", t.n, s.repeat(p, t), f.Text())
		}
		s.failed[of] = append(s.failed[of], fmt.Sprint(t.n))
		s.Count("failures", 1)
	}
}

// sum prints the rounds in which each test failed.
func (s *soaking) sum() {
	for _, of := range slices.Sorted(maps.Keys(s.failed)) {
		s.Note("%s failed in %d of %d rounds: %s", of, len(s.failed[of]), s.rounds, strings.Join(s.failed[of], ", "))
	}
}
