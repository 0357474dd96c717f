// Package fuzz searches for inputs that make a fuzz target fail. go test runs only the committed seeds. Commit an input
// that this search finds as a seed.
package fuzz

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/countersign-run/countersign/scripts/prove/proof"
)

// executions is the name of the count of tried inputs.
const executions = "executions"

// Proof is the command that scripts/prove runs.
func Proof() proof.Proof {
	long := 10 * time.Minute
	return proof.Proof{
		Name: "fuzz", Args: "packages", Only: "targets", List: list,
		Tries: "random inputs for each fuzz target: an input that makes a target fail is a finding",
		Takes: "the time of -for for all targets together, and the time to build them",
		About: `Each target begins with its committed seeds alone. As many targets run at once as there are cores. An input at which
a target fails is written to testdata/fuzz beside the target: commit it with the fix, and go test runs it from then on.
It is for a change of a parser, a validator or a state machine, and for each night.`,
		Flags: func(f *flag.FlagSet) {
			f.DurationVar(&long, "for", long, "search for this `time`, divided among the targets")
		},
		Run: func(ctx context.Context, r *proof.Run) error { return search(ctx, r, long) },
	}
}

func list() ([]proof.Count, error) {
	found, err := targets(context.Background(), "github.com/countersign-run/countersign/...")
	return []proof.Count{{N: len(found), What: "fuzz targets"}}, err
}

// search runs the targets of the packages in the run's arguments, for the given time in all.
func search(ctx context.Context, r *proof.Run, long time.Duration) error {
	all, err := targets(ctx, r.Args...)
	if err != nil {
		return err
	}
	var selected []*target
	for _, t := range all {
		if r.Selects(t.name) {
			selected = append(selected, t)
		}
	}
	if len(selected) == 0 {
		return fmt.Errorf("%w: none of these packages has a matching fuzz target", proof.ErrUsage)
	}
	dir, err := os.MkdirTemp("", "fuzz")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	lanes := min(runtime.NumCPU(), len(selected))
	s := &searching{Run: r, cache: filepath.Join(dir, "cache"),
		each: max(time.Second, long*time.Duration(lanes)/time.Duration(len(selected)))}
	r.Note("%d targets, %s for each", len(selected), s.each.Round(time.Second))
	s.binary = binaries(ctx, dir, selected)
	s.all(ctx, lanes, selected)
	return ctx.Err()
}

// binaries returns, for each package of the targets, a function that builds the tests once.
func binaries(ctx context.Context, dir string, targets []*target) map[string]func() (string, error) {
	build := map[string]func() (string, error){}
	for i, t := range targets {
		if build[t.Path] == nil {
			file := filepath.Join(dir, fmt.Sprint(i))
			build[t.Path] = sync.OnceValues(func() (string, error) { return file, t.Build(ctx, file, "-fuzz=.") })
		}
	}
	return build
}

// all runs the targets. Each lane runs one at a time.
func (s *searching) all(ctx context.Context, lanes int, targets []*target) {
	next := make(chan *target)
	var all sync.WaitGroup
	for range lanes {
		all.Go(func() {
			for t := range next {
				if ctx.Err() == nil {
					s.at(ctx, t)
				}
			}
		})
	}
	for _, t := range targets {
		next <- t
	}
	close(next)
	all.Wait()
}
