// Command hostile runs a file of hostile inputs (one JSON case a line) against all of Countersign, and prints by
// category what held:
//
//	go run ./scripts/prove/hostile [-cases FILE] [-only ID,ID] [-v] [-json]
//
// Without -cases it runs those of testdata, and those of the file that HOSTILE_CASES names.
//
// Every case has a world of its own: an embedded store in a temporary directory, a strict fake Gemini, a local Gmail
// and Calendar, and no way to any other address. In addition to what a case asks for itself, each checks that there is
// no unapproved effect, nothing of one user in an answer to another, no token and no private text in a log, an error or
// the audit, that errors have the contract's shape, and that the server still answers. The command fails when a
// category is under its bar.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
)

func main() {
	var o options
	flag.StringVar(&o.file, "cases", "", "the file of cases; the default is all of testdata")
	flag.StringVar(&o.only, "only", "", "run the cases whose id begins so; several with commas between them")
	flag.StringVar(&o.not, "not", "", "leave out the case of this id")
	flag.BoolVar(&o.verbose, "v", false, "print what came of every case")
	flag.BoolVar(&o.json, "json", false, "print a line of JSON for each case, and no table")
	flag.Parse()
	ok, err := run(context.Background(), os.Stdout, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "hostile:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

type options struct {
	file, only    string
	not           string
	verbose, json bool
}

// run runs the cases and prints what came of them; ok reports that no category is under its bar.
func run(ctx context.Context, out io.Writer, o options) (ok bool, err error) {
	cases, err := o.cases()
	if err != nil {
		return false, err
	}
	net, err := goOffline()
	if err != nil {
		return false, err
	}
	results := runAll(ctx, net, cases)
	if o.json {
		return list(out, results)
	}
	return report(out, results, o.verbose)
}

// cases returns the cases that were asked for.
func (o options) cases() (cases []Case, err error) {
	if o.file != "" {
		cases, err = readCases(o.file)
	} else {
		cases, err = allCases()
	}
	if err != nil {
		return nil, err
	}
	cases = slices.DeleteFunc(cases, func(c Case) bool {
		return c.ID == o.not || !slices.ContainsFunc(strings.Split(o.only, ","),
			func(id string) bool { return strings.HasPrefix(c.ID, id) })
	})
	if len(cases) == 0 {
		return nil, fmt.Errorf("no case begins with %q", o.only)
	}
	return cases, nil
}

// list prints each result as a line of JSON, for programs.
func list(out io.Writer, results []Result) (ok bool, err error) {
	ok = true
	enc := json.NewEncoder(out)
	for _, r := range results {
		ok = ok && len(r.Wrong) == 0
		if err := enc.Encode(Outcome{r.ID, r.outcome(), r.Wrong}); err != nil {
			return false, err
		}
	}
	return ok, nil
}

// Outcome is a line of -json.
type Outcome struct {
	ID    string   `json:"id"`
	Came  string   `json:"came"` // "passed", "failed" or "not yet"
	Wrong []string `json:"wrong,omitempty"`
}

func (r Result) outcome() string {
	switch {
	case r.NotYet != "":
		return "not yet"
	case len(r.Wrong) > 0:
		return "failed"
	}
	return "passed"
}

// bars are the shares that must pass, in percent; other categories have the default one.
var bars = map[string]int{"auth": 100, "jwt": 100, "tenancy": 100, "approval": 100, "race": 100, "pubsub": 100,
	"header": 100}

const commonBar = 98

// line is one category of the table.
type line struct{ passed, failed, notYet int }

func report(out io.Writer, results []Result, verbose bool) (ok bool, err error) {
	table := map[string]*line{}
	missing := map[string]int{}
	var names []string
	p := &printer{out: out}
	for _, r := range results {
		l := table[r.Category]
		if l == nil {
			l = &line{}
			table[r.Category], names = l, append(names, r.Category)
		}
		switch r.outcome() {
		case "not yet":
			l.notYet++
			missing[r.NotYet]++
		case "failed":
			l.failed++
		default:
			l.passed++
		}
		r.print(p, verbose)
	}
	ok = true
	p.printf("%-12s %7s %7s %7s  %s\n", "category", "passed", "failed", "not yet", "bar")
	for _, name := range names {
		l, bar := table[name], cmp.Or(bars[name], commonBar)
		mark := ""
		if l.passed*100 < bar*(l.passed+l.failed) {
			ok, mark = false, "  under the bar"
		}
		p.printf("%-12s %7d %7d %7d  %d %%%s\n", name, l.passed, l.failed, l.notYet, bar, mark)
	}
	for _, target := range slices.Sorted(maps.Keys(missing)) {
		p.printf("not yet applicable: %s (%d)\n", target, missing[target])
	}
	return ok, p.err
}

// printer keeps the first error of writing.
type printer struct {
	out io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	if _, err := fmt.Fprintf(p.out, format, args...); err != nil && p.err == nil {
		p.err = err
	}
}

func (r Result) print(p *printer, verbose bool) {
	switch {
	case len(r.Wrong) > 0:
		p.printf("FAILED %s %s: %s\n  %s\n  want: %s %d, %s\n  came: %s\n", r.ID, r.Target, strings.Join(r.Wrong, "; "),
			r.Input, r.Expect.Class, r.Expect.HTTP, r.Expect.Note, r.Came)
	case r.Permitted != "":
		p.printf("permitted %s %s: %s\n", r.ID, r.Target, r.Permitted)
	case verbose:
		p.printf("%s %s: %s%s in %v\n", r.ID, r.Target, r.Came, r.NotYet, r.Took)
	}
}
