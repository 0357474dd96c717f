// Command eval evaluates an agent of this deployment with the cases in a folder: whether its model makes the expected
// calls, and gives the expected answers. `go doc ./shared/countersign/eval` describes the files, and reads those of
// Google's ADK too.
//
//	go run ./scripts/eval DIR                      the agent that each file names, else the assistant
//	go run ./scripts/eval -agent concierge -agents agents -n 5 -out last.json DIR
//	go run ./scripts/eval -offline DIR             with the offline demo model, without a key
//
// The agent runs as it does when it is deployed, with the environment's settings, in memory. No tool is called: the
// case has the results, or the model reads that the call was not run. -reads names tools that only read and that are
// really called.
//
// It prints a table with the pass rates, why cases failed, and what got worse or better since the last results. The
// exit code is 1 if a case failed or a file has a mistake, and 2 if nothing was evaluated or Ctrl-C interrupted it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/countersign-run/countersign/shared/countersign/eval"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	passed, err := evaluate(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, flag.ErrHelp):
	case err != nil:
		fmt.Fprintln(os.Stderr, "eval:", err)
		os.Exit(2)
	case !passed:
		os.Exit(1)
	}
}

// flags are the flags of the command.
type flags struct {
	dir, agent, agents, out, against, only, reads, results, judge string

	offline  bool
	repeat   int
	parallel int
	timeout  time.Duration
}

const usage = `usage: go run ./scripts/eval [flags] DIR

Evaluates an agent with the cases in DIR: NAME.eval.yaml, and ADK's NAME.evalset.json and NAME.test.json.

`

// parse reads the flags. With a help flag it prints the help and returns flag.ErrHelp.
func parse(args []string, out io.Writer) (f flags, err error) {
	set := flag.NewFlagSet("eval", flag.ContinueOnError)
	set.SetOutput(io.Discard) // errors are returned
	set.StringVar(&f.agent, "agent", "assistant", "the `name` of the agent for cases whose file names none")
	set.StringVar(&f.agents, "agents", "", "the `folder` of declared agents (default AGENTS)")
	set.IntVar(&f.repeat, "n", 1, "`runs` of each case whose file does not state them")
	set.StringVar(&f.out, "out", "", "write the results to this `file`, and compare them with its earlier contents")
	set.StringVar(&f.against, "against", "", "compare the results with those in this `file`")
	set.StringVar(&f.only, "case", "",
		"run only the cases whose FILE/NAME contains this `text` or matches this pattern")
	set.StringVar(&f.reads, "reads", "", "the `names` of tools that only read and that are really called, with commas")
	set.StringVar(&f.results, "results", "", "a `file` with results of tools, for cases that have none")
	set.StringVar(&f.judge, "judge", "", "the `model` that judges, whatever the files say")
	set.BoolVar(&f.offline, "offline", false, "use the offline demo model, which needs no key and judges nothing")
	set.IntVar(&f.parallel, "parallel", 4, "conversations at the same time")
	set.DurationVar(&f.timeout, "timeout", 5*time.Minute, "the longest `time` of one run")
	err = set.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, usage)
		set.SetOutput(out)
		set.PrintDefaults()
		return f, err
	case err != nil:
		return f, fmt.Errorf("%w; -h prints the flags", err)
	case set.NArg() != 1:
		return f, errors.New("one folder or file of cases was expected; -h prints the flags")
	}
	f.dir = set.Arg(0)
	return f, nil
}

// evaluate runs the command, and reports whether all cases passed. After an error, no results are stored.
func evaluate(ctx context.Context, args []string, getenv func(string) string, out, progress io.Writer) (passed bool,
	err error) {
	f, err := parse(args, out)
	if err != nil {
		return false, err
	}
	set, err := eval.Load(f.dir)
	if err != nil {
		return false, err
	}
	if f.results != "" {
		if err := set.AddResults(f.results); err != nil {
			return false, err
		}
	}
	if err := f.choose(set); err != nil {
		return false, err
	}
	last, err := f.last()
	if err != nil {
		return false, err
	}
	d, err := open(ctx, f, getenv)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	o := eval.Options{Repeat: f.repeat, Parallel: f.parallel, Timeout: f.timeout, Judge: d.judge}
	if f.reads != "" {
		o.Reads = strings.FieldsFunc(f.reads, func(r rune) bool { return r == ',' || r == ' ' })
	}
	o.Done = func(c *eval.Case, r eval.RunResult) {
		said := "passed"
		if !r.Passed {
			said = "failed"
		}
		fmt.Fprintf(progress, "%s %s\n", said, c.ID())
	}
	report, err := eval.Run(ctx, d.evaluated(), set, o)
	if err != nil && report != nil { // interrupted: the results are shown, and not stored
		return false, errors.Join(report.Table(out), fmt.Errorf("interrupted: %w", err))
	}
	if err != nil {
		return false, err
	}
	passed = report.Passed() // of the cases that ran
	return passed, f.write(out, report, last)
}

// choose keeps the cases that the user wants.
func (f flags) choose(set *eval.Set) error {
	if _, err := path.Match(f.only, ""); err != nil {
		return fmt.Errorf("-case is %q: %w", f.only, err)
	}
	all := len(set.Cases)
	set.Cases = slices.DeleteFunc(set.Cases, func(c *eval.Case) bool { return !f.wants(c.ID()) })
	if len(set.Cases) == 0 && all > 0 {
		return fmt.Errorf("-case is %q; none of the %d cases has it", f.only, all)
	}
	return nil
}

// wants reports whether the user wants the case.
func (f flags) wants(id string) bool {
	matched, _ := path.Match(f.only, id) // choose has checked the pattern
	return matched || strings.Contains(id, f.only)
}

// earlier returns the results in a file, or nil if it does not exist.
func earlier(name string) (*eval.Report, error) {
	r, err := eval.ReadReport(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return r, err
}

// last returns the results to compare with, or nil.
func (f flags) last() (*eval.Report, error) {
	switch {
	case f.against != "":
		return eval.ReadReport(f.against)
	case f.out != "":
		return earlier(f.out)
	}
	return nil, nil
}

// write prints the report, compares it, and stores it. The file keeps the results of cases that the user did not want
// this time.
func (f flags) write(out io.Writer, r, last *eval.Report) error {
	if err := r.Table(out); err != nil {
		return err
	}
	unwanted := func(c eval.CaseResult) bool { return !f.wants(c.ID()) }
	if last != nil {
		compared := *last
		compared.Cases = slices.DeleteFunc(slices.Clone(last.Cases), unwanted)
		if err := r.Compare(out, &compared); err != nil {
			return err
		}
	}
	if f.out == "" {
		return nil
	}
	old, err := earlier(f.out)
	if err != nil {
		return err
	}
	if old != nil && f.only != "" {
		for _, c := range old.Cases {
			if unwanted(c) {
				r.Cases = append(r.Cases, c)
			}
		}
	}
	return r.Write(f.out)
}
