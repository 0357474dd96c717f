// Package proof is the common frame of the proofs in scripts/prove: flags, seeds, reports, exit codes, and the worker
// processes that a proof starts.
package proof

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// The exit codes of Main.
const (
	Proven = iota
	Found  // at least one finding
	Misused
	Unable // the proof could not run
)

// Proof is one proof. Its functions share the variables that Flags registers.
type Proof struct {
	Name  string // the name on the command line
	Tries string // a line about what it tries
	Takes string // the duration on two cores, and how to shorten it
	About string // the rest of the help

	Chance  bool   // it uses random numbers, and has -seed
	Args    string // the plural name of its arguments; empty: it takes none
	Only    string // the plural name of the objects of -only; empty: it has no -only
	Resumes bool   // it has -resume, and calls Run.Before and Run.Keep
	Each    bool   // each try prints a line, as with -v

	Flags func(*flag.FlagSet)                      // registers additional flags; may be nil
	List  func() ([]Count, error)                  // counts what it tries
	Run   func(context.Context, *Run) error        // runs it; returns an error if it cannot run, or ErrUsage
	Work  func(ctx context.Context, o Order) error // runs in the processes that it starts; nil: it starts none
}

// Count is the number of tries of one kind, before any selection.
type Count struct {
	N    int
	What string
}

// ErrUsage is wrapped by the error of Proof.Run if its flags are inconsistent.
var ErrUsage = errors.New("wrong usage")

// Main runs the proof that args name, or lists the proofs, and returns the exit code.
func Main(args []string, out, errs io.Writer, proofs ...Proof) int {
	if worked, err := work(proofs); worked {
		return code(errs, err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if len(args) == 0 || strings.HasPrefix(args[0], "-h") || args[0] == "--help" {
		fmt.Fprint(out, usage(proofs))
		return Proven
	}
	if args[0] == "-list" {
		for _, p := range proofs {
			if err := p.list(out); err != nil {
				return code(errs, err)
			}
		}
		return Proven
	}
	for _, p := range proofs {
		if p.Name == args[0] {
			return p.Main(ctx, args[1:], out, errs)
		}
	}
	fmt.Fprintf(errs, "prove: no proof %q\n%s", args[0], usage(proofs))
	return Misused
}

func usage(proofs []Proof) string {
	var b strings.Builder
	b.WriteString("usage: go run ./scripts/prove NAME [flags]; NAME -h describes one, -list counts what each tries\n\n")
	for _, p := range proofs {
		fmt.Fprintf(&b, "  %-9s %s\n", p.Name, p.Tries)
	}
	b.WriteString("\nIt exits with 0 if the proof holds, 1 with a finding, 2 after wrong usage, 3 if it could " +
		"not run.\n")
	return b.String()
}

func (p Proof) list(out io.Writer) error {
	counts, err := p.List()
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "%s\n", p.Name)
	for _, c := range counts {
		fmt.Fprintf(out, "%8d %s\n", c.N, c.What)
	}
	return nil
}

// flags are the flags that several or all proofs have.
type flags struct {
	seed                seed
	only, report        string
	resume              string
	json, list, verbose bool
}

// Main runs the proof with its flags, and returns the exit code.
func (p Proof) Main(ctx context.Context, args []string, out, errs io.Writer) int {
	var f flags
	set := p.flagSet(&f, errs)
	names, err := parse(set, args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return Proven
	case err != nil:
		return Misused
	case len(names) > 0 && p.Args == "":
		fmt.Fprintf(errs, "prove %s: %q is not a flag; -h lists them\n", p.Name, names[0])
		return Misused
	case f.list:
		return code(errs, p.list(out))
	}
	r, err := p.open(f, out)
	if err != nil {
		return code(errs, err)
	}
	r.Args = names
	err = p.Run(ctx, r)
	switch {
	case err == nil && ctx.Err() != nil:
		err = ctx.Err()
	case err == nil && f.only != "" && !r.tried():
		err = fmt.Errorf("%w: -only matches none of the %s", ErrUsage, p.Only)
	}
	if !errors.Is(err, ErrUsage) {
		r.summarize(err)
	}
	if err = errors.Join(err, r.close()); r.Findings() > 0 {
		code(errs, err)
		return Found
	}
	return code(errs, err)
}

// parse parses the flags. It returns the other arguments, which can be before, between and after the flags.
func parse(set *flag.FlagSet, args []string) (names []string, err error) {
	for {
		if err := set.Parse(args); err != nil || set.NArg() == 0 {
			return names, err
		}
		names, args = append(names, set.Arg(0)), set.Args()[1:]
	}
}

// code prints the error, and returns its exit code.
func code(errs io.Writer, err error) int {
	if err == nil {
		return Proven
	}
	fmt.Fprintln(errs, "prove:", err)
	if errors.Is(err, ErrUsage) {
		return Misused
	}
	return Unable
}

func (p Proof) flagSet(f *flags, errs io.Writer) *flag.FlagSet {
	set := flag.NewFlagSet("prove "+p.Name, flag.ContinueOnError)
	set.SetOutput(errs)
	set.Usage = func() {
		form := "[flags]"
		if p.Args != "" {
			form += " [" + p.Args + "]"
		}
		fmt.Fprintf(errs, "usage: go run ./scripts/prove %s %s\n\n%[1]s: %[3]s\n\nIt takes %[4]s.\n\n%[5]s\n\n", p.Name,
			form, p.Tries, p.Takes, strings.TrimSpace(p.About))
		set.PrintDefaults()
		fmt.Fprintf(errs, "\nexamples:\n%s", p.examples())
	}
	if p.Chance {
		f.seed = Seed
		set.Var(&f.seed, "seed", "the `number` that determines all random choices, or random: choose and "+
			"print a number")
	}
	if p.Only != "" {
		set.StringVar(&f.only, "only", "",
			"try only the "+p.Only+" with these `names`, separated by commas; * matches any text")
	}
	if p.Resumes {
		set.StringVar(&f.resume, "resume", "", "store each result in this `file`, and skip tries that have one")
	}
	set.StringVar(&f.report, "report", "", "also write the report to this `file`, one JSON object a line")
	set.BoolVar(&f.json, "json", false, "print the report as one JSON object a line")
	set.BoolVar(&f.list, "list", false, "only count what it tries")
	if !p.Each {
		set.BoolVar(&f.verbose, "v", false, "also print what held and what was skipped")
	}
	if p.Flags != nil {
		p.Flags(set)
	}
	return set
}

// examples returns example command lines with the flags that most proofs have.
func (p Proof) examples() string {
	call := "  go run ./scripts/prove " + p.Name
	lines := call + "\n" + call + " -list\n"
	if p.Chance {
		lines += call + " -seed random\n" + call + " -seed 2231489697\n"
	}
	return lines
}

func (p Proof) open(f flags, out io.Writer) (*Run, error) {
	r := &Run{Seed: uint64(f.seed), Verbose: f.verbose || p.Each, proof: p.Name, out: out, json: f.json,
		began: time.Now()}
	var err error
	if r.only, err = pattern(f.only); err != nil {
		return nil, err
	}
	if f.report != "" {
		if r.file, err = os.Create(f.report); err != nil {
			return nil, err
		}
	}
	if r.kept, err = openKept(f.resume); err != nil {
		return nil, errors.Join(err, r.close())
	}
	if p.Chance {
		r.Note("seed %d", r.Seed)
	}
	return r, nil
}
