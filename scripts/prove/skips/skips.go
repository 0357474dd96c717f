// Package skips reports which optional programs and services are missing on this machine, which tests are skipped for
// that reason, and how to install them. It is not a proof. It reports what go test has not checked on this machine.
package skips

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/testkit/realpart"
)

// Proof runs the tests and summarizes the skipped ones.
func Proof() proof.Proof {
	var short bool
	packages := "./..."
	return proof.Proof{
		Name: "skips", List: list,
		Tries: "all tests: which programs are missing, which tests skip therefore, and how to install them",
		Takes: "as long as go test, or seconds if go test has just run; -short omits long tests",
		About: `The parts are those of shared/testkit/realpart. With REQUIRE_ALL=1 in go test a test that lacks one fails.`,
		Flags: func(f *flag.FlagSet) {
			f.BoolVar(&short, "short", false, "run go test with -short")
			f.StringVar(&packages, "packages", packages, "run the tests of these `packages`, with spaces between them")
		},
		Run: func(ctx context.Context, r *proof.Run) error {
			args := append([]string{"test", "-json"}, strings.Fields(packages)...)
			if short {
				args = slices.Insert(args, 2, "-short")
			}
			skipped, err := test(ctx, r, args)
			if err == nil {
				r.Note("%s", sum(skipped))
			}
			return err
		},
	}
}

func list() ([]proof.Count, error) {
	return []proof.Count{{N: len(realpart.All), What: "optional programs and services that tests need"}}, nil
}

// skip is a skipped test, with its message.
type skip struct{ of, said string }

// test runs go test, and returns the skipped tests. A failed test is a finding.
func test(ctx context.Context, r *proof.Run, args []string) ([]skip, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "REQUIRE_ALL=")
	cmd.Stderr = os.Stderr // messages of the go command itself
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	skipped, err := read(out, r)
	if ended := cmd.Wait(); ended != nil && err == nil && r.Findings() == 0 {
		err = fmt.Errorf("go test: %w", ended)
	}
	return skipped, err
}

// read reads the output of go test -json, and reports each package and test when it ends.
func read(out io.Reader, r *proof.Run) (skipped []skip, err error) {
	said := map[string]string{}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct{ Action, Package, Test, Output string }
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue // build output
		}
		of := strings.TrimSuffix(short(e.Package)+" "+e.Test, " ")
		switch {
		case e.Action == "output":
			said[of] += e.Output
			continue
		case e.Action == "fail":
			r.Finding(of, "it fails\n%s", said[of])
		case e.Action == "pass" && e.Test == "":
			r.Held(of, "its tests passed")
		case e.Action == "skip" && e.Test != "":
			skipped = append(skipped, skip{of, said[of]})
			r.Skipped(of, "%s", strings.TrimSpace(said[of]))
		}
		delete(said, of)
	}
	return skipped, lines.Err()
}

// short returns a package's path in this repository.
func short(path string) string {
	return strings.TrimPrefix(path, "github.com/countersign-run/countersign/")
}

// sum summarizes the skipped tests: those with missing programs, with the commands that install them, and those with
// other reasons.
func sum(skipped []skip) string {
	by := map[string][]string{}
	var left, other int
	for _, s := range skipped {
		switch p, lacks := realpart.Lacks(s.said); {
		case lacks:
			by[p.Name] = append(by[p.Name], s.of)
		case realpart.LeftOut(s.said):
			left++
		default:
			other++
		}
	}
	var b strings.Builder
	if len(by) == 0 {
		b.WriteString("no test lacks a part\n")
	}
	var install []string
	for _, p := range realpart.All {
		if len(by[p.Name]) == 0 {
			continue
		}
		fmt.Fprintf(&b, "absent: %s; %d tests skip:\n", p.Name, len(by[p.Name]))
		for _, of := range by[p.Name] {
			fmt.Fprintf(&b, "    %s\n", of)
		}
		if !slices.Contains(install, p.Install) {
			install = append(install, p.Install)
		}
	}
	for _, how := range install {
		fmt.Fprintf(&b, "to install: %s\n", how)
	}
	fmt.Fprintf(&b, "%d tests were left out by -short, %d skip for other reasons (-v)", left, other)
	return b.String()
}
