package fuzz

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/base/subprocess"
)

// target is a fuzz target of a package.
type target struct {
	proof.Package
	name string
}

// targets returns the fuzz targets of the packages.
func targets(ctx context.Context, patterns ...string) (found []*target, err error) {
	packages, err := proof.Packages(ctx, patterns...)
	if err != nil {
		return nil, err
	}
	for _, p := range packages {
		for _, file := range p.Tests {
			text, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			for _, d := range text.Decls {
				if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil && strings.HasPrefix(f.Name.Name, "Fuzz") {
					found = append(found, &target{p, f.Name.Name})
				}
			}
		}
	}
	return found, nil
}

// searching is one run of the proof.
type searching struct {
	*proof.Run
	cache  string                            // the interesting inputs; empty at first
	each   time.Duration                     // the time for each target
	binary map[string]func() (string, error) // builders of test binaries by package path
}

var (
	tried   = regexp.MustCompile(`execs: (\d+)`)
	written = regexp.MustCompile(`Failing input written to (\S+)`)
	ended   = regexp.MustCompile(`(?m)^    context deadline exceeded$`)
	fails   = regexp.MustCompile(`Failing input|seed corpus entry|panic|fuzzing process`)
)

// at searches with one target, and reports the result.
func (s *searching) at(ctx context.Context, t *target) {
	of := t.Name + " " + t.name
	binary, err := s.binary[t.Path]()
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		s.Finding(of, "it does not build: %v", err)
		return
	}
	out, err := s.run(ctx, t, binary)
	n := 0
	if last := tried.FindAllStringSubmatch(out, -1); len(last) > 0 {
		n, _ = strconv.Atoi(last[len(last)-1][1]) // the expression matches digits
	}
	s.Count(executions, n)
	switch {
	case ctx.Err() != nil: // the run was interrupted
	case err == nil || outOfTime(out):
		s.Note("%s: %d %s", of, n, executions)
		s.Held(of, "")
	default:
		s.Finding(of, "%s", found(t, out, err))
	}
}

// run runs the target in the package's folder, as go test does. Minimizing is limited, because by default a target can
// spend a minute on each interesting input.
func (s *searching) run(ctx context.Context, t *target, binary string) (string, error) {
	cmd := exec.CommandContext(ctx, binary, "-test.run=^$", "-test.fuzz=^"+t.name+"$",
		"-test.fuzztime="+s.each.String(), "-test.fuzzminimizetime=10x", "-test.parallel=1",
		"-test.fuzzcachedir="+filepath.Join(s.cache, t.Name))
	cmd.Dir, cmd.WaitDelay, cmd.Env = t.Dir, time.Minute, append(os.Environ(), "PWD="+t.Dir)
	subprocess.Own(cmd)
	cmd.Cancel = func() error { subprocess.Kill(cmd.Process); return nil }
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// outOfTime reports whether a target failed only because its time ended. This is a race in Go's coordinator,
// go.dev/issue/75804, which is fixed in Go 1.27. A finding names its failing input or seed, and this failure does not.
func outOfTime(out string) bool { return ended.MatchString(out) && !fails.MatchString(out) }

// found returns the lines that report the failure and the input's file.
func found(t *target, out string, err error) string {
	var text strings.Builder
	for _, f := range proof.Failures(fmt.Sprintf("%s\n%v", out, err)) {
		text.WriteString(f.Text() + "\n")
	}
	if input := written.FindStringSubmatch(out); input != nil {
		fmt.Fprintf(&text, "written to %s: commit it with the fix", filepath.Join(t.Name, input[1]))
	}
	return strings.TrimRight(text.String(), "\n")
}
