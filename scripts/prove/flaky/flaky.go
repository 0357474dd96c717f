// Package flaky finds tests that fail by chance. It runs tests many times on a busy machine, in a different order each
// time.
package flaky

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/countersign-run/countersign/scripts/prove/proof"
)

// options are the flags.
type options struct {
	rounds      int
	short, race bool
	run         string
	delays      bool
	at          string
}

// Proof returns the command that scripts/prove runs.
func Proof() proof.Proof {
	o := options{rounds: 20}
	return proof.Proof{
		Name: "flaky", Chance: true, Args: "packages", List: list,
		Tries: "tests, many times on a busy machine in a random order: a test that fails once is a finding",
		Takes: "about three times as long as go test for each round; name packages or set -n and -short for less",
		About: `The tests are built once. In each round every package runs in its own directory, as go test runs it, beside a busy
loop on each core, with GOMAXPROCS=1 and 2 in turn. In one of three rounds browsers get the answers to changes a second
late, and in another one what they read. A test's first failure is printed when it happens. The seed of a round is that
of -shuffle: go test -shuffle SEED repeats the order.

With -delays the cores are not busy. Instead, the tests and the module's packages are built with delays after statements
that let another goroutine or process go on: sends and receives, close, Unlock, Commit, Write, the beginning of a
goroutine, and the like. In each round, one of five of these points delays its passages 1, 2, 4, 8 and so on by 100 to
600 ms. The seed of a round determines its points; the rounds of -n 5 -seed 5 delay at each point. A finding lists
the points that were passed. -at then tries some of them alone:

  go run ./scripts/prove flaky -at 'stream.go:(87|112):' ./shared/web

Nothing is delayed in a bubble of testing/synctest, and in programs that a test builds itself or starts without its
environment.`,
		Flags: func(f *flag.FlagSet) {
			f.IntVar(&o.rounds, "n", o.rounds, "run each package in this many `rounds`")
			f.BoolVar(&o.short, "short", false, "run the tests with -short")
			f.BoolVar(&o.race, "race", false, "build the tests with the race detector")
			f.StringVar(&o.run, "run", "", "run only the tests that match this regular `expression`")
			f.BoolVar(&o.delays, "delays", false, "delay goroutines at random points instead of keeping the cores busy")
			f.StringVar(&o.at, "at", "", "as -delays, but delay at all points whose file:line:column matches this "+
				"regular `expression`, and at no other")
		},
		Run: func(ctx context.Context, r *proof.Run) error { return o.soak(ctx, r) },
	}
}

func list() ([]proof.Count, error) {
	return []proof.Count{{N: 20, What: "rounds of each package, unless -n says otherwise"}}, nil
}

// soak builds the tests and runs the rounds.
func (o options) soak(ctx context.Context, r *proof.Run) error {
	packages, err := proof.Packages(ctx, r.Args...)
	if err != nil {
		return err
	}
	if len(packages) == 0 {
		return fmt.Errorf("%w: none of these packages has tests", proof.ErrUsage)
	}
	dir, err := os.MkdirTemp("", "flaky")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	s := &soaking{Run: r, options: o, dir: dir, binary: map[string]string{}, failed: map[string][]string{}}
	if o.delays || o.at != "" {
		if s.delayed, err = delayed(ctx, dir, o.at); err != nil {
			return err
		}
		r.Note("%d points can delay", len(s.delayed.points))
	}
	began := time.Now()
	each(packages, 1, func(i int, p proof.Package) { s.build(ctx, p, filepath.Join(dir, fmt.Sprintf("%d.test", i))) })
	r.Note("%d packages built in %.0f s", len(s.tests), time.Since(began).Seconds())
	if s.delayed == nil {
		defer load()()
	}
	for n := 1; n <= o.rounds && ctx.Err() == nil; n++ {
		s.round(ctx, n)
	}
	s.sum()
	return ctx.Err()
}

// each calls do for each package, with the given number of calls at once for each core.
func each(packages []proof.Package, calls int, do func(i int, p proof.Package)) {
	var lanes sync.WaitGroup
	next := make(chan int)
	for range calls * runtime.NumCPU() {
		lanes.Go(func() {
			for i := range next {
				do(i, packages[i])
			}
		})
	}
	for i := range packages {
		next <- i
	}
	close(next)
	lanes.Wait()
}

// load keeps every core busy until the returned function is called.
func load() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var loops sync.WaitGroup
	for range runtime.NumCPU() {
		loops.Go(func() {
			for ctx.Err() == nil {
				for range 1 << 16 { // the loops rarely check the context, so they do not wait for each other
				}
			}
		})
	}
	return func() { cancel(); loops.Wait() }
}

// flags returns the go test flags for building the tests.
func (o options) flags() (flags []string) {
	if o.race {
		flags = append(flags, "-race")
	}
	return flags
}

// args returns the test binary's flags for a round with the seed.
func (o options) args(seed uint64) []string {
	args := []string{"-test.paniconexit0", "-test.timeout=30m", fmt.Sprintf("-test.shuffle=%d", seed)}
	if o.short {
		args = append(args, "-test.short")
	}
	if o.run != "" {
		args = append(args, "-test.run="+o.run)
	}
	return args
}

// repeat returns the command that repeats a package's tests as they ran in the round.
func (o options) repeat(p proof.Package, t turn) string {
	var args []string
	if o.delays || o.at != "" {
		args = []string{fmt.Sprintf("go run ./scripts/prove flaky -n 1 -seed %d", t.seed)}
		if o.delays {
			args = append(args, "-delays")
		}
		if o.at != "" {
			args = append(args, fmt.Sprintf("-at '%s'", o.at))
		}
	} else {
		args = append(slices.Clone(t.env), fmt.Sprintf("go test -count=1 -shuffle=%d", t.seed))
	}
	args = append(args, o.flags()...)
	if o.short {
		args = append(args, "-short")
	}
	if o.run != "" {
		args = append(args, fmt.Sprintf("-run '%s'", o.run))
	}
	return strings.Join(append(args, "./"+p.Name), " ")
}
