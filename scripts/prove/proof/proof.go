// Package proof is the frame of the proofs of scripts/prove: one form of flags, seeds, reports and exit codes, and the
// workers that a proof starts as processes of their own.
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
	Found  // there is a finding
	Misused
	Unable // the proof could not be run
)

// Proof is one proof. Its funcs share what Flags registers.
type Proof struct {
	Name  string // as in: scripts/prove NAME
	Tries string // what it tries, in a line
	Takes string // how long on 2 cores, and what is shorter
	About string // the rest of what -h says

	Chance  bool   // chance takes part in it: it has -seed
	Args    string // what its arguments are, in the plural; empty: it takes none
	Only    string // what -only selects, in the plural; empty: it has none
	Resumes bool   // it has -resume, by Run.Before and Run.Keep
	Each    bool   // each try is worth a line, as with -v

	Flags func(*flag.FlagSet)                      // registers its own flags; may be nil
	List  func() ([]Count, error)                  // what it tries, counted
	Run   func(context.Context, *Run) error        // tries it; an error means that it could not, or ErrUsage
	Work  func(ctx context.Context, o Order) error // what a process does that it has started; nil: it starts none
}

// Count is how much of a kind a proof tries, before any selection.
type Count struct {
	N    int
	What string
}

// ErrUsage is wrapped by the error of Proof.Run when its flags do not go together.
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
	fmt.Fprintf(errs, "prove: there is no proof %q\n%s", args[0], usage(proofs))
	return Misused
}

func usage(proofs []Proof) string {
	var b strings.Builder
	b.WriteString("usage: go run ./scripts/prove NAME [flags]; NAME -h says more, -list counts what each tries\n\n")
	for _, p := range proofs {
		fmt.Fprintf(&b, "  %-9s %s\n", p.Name, p.Tries)
	}
	b.WriteString("\nIt exits with 0 when that is proven, 1 with a finding, 2 after wrong usage, 3 where it could " +
		"not be run.\n")
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

// flags are those that every proof has, or that mean the same in each that has them.
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
		err = fmt.Errorf("%w: -only names none of its %s", ErrUsage, p.Only)
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

// parse parses the flags, and returns the arguments before, between and after them.
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
		set.Var(&f.seed, "seed", "the `number` from which all that chance chooses follows, or random: draw and "+
			"print one")
	}
	if p.Only != "" {
		set.StringVar(&f.only, "only", "",
			"try only these "+p.Only+": `names`, with commas between them and * for any text")
	}
	if p.Resumes {
		set.StringVar(&f.resume, "resume", "", "keep what came of each try in this `file`, and do not try it again")
	}
	set.StringVar(&f.report, "report", "", "write the report to this `file` too, a JSON object a line")
	set.BoolVar(&f.json, "json", false, "print the report as a JSON object a line")
	set.BoolVar(&f.list, "list", false, "only count what it tries")
	if !p.Each {
		set.BoolVar(&f.verbose, "v", false, "print what held and what was skipped, too")
	}
	if p.Flags != nil {
		p.Flags(set)
	}
	return set
}

// examples are lines to type, of the flags that most proofs have.
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
