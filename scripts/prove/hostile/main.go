// Package hostile runs hostile inputs (one JSON case a line) against a complete Countersign, and counts the results by
// category.
//
// Every case has a separate deployment: an embedded store in a temporary folder, a strict fake Gemini, a local Gmail
// and Calendar, and no way to reach any other address. Besides its own expectation, each case checks five things: there
// is no unapproved effect; no response has another user's data; no log, error or audit has a token or a private text;
// errors have the contract's shape; and the server still answers.
package hostile

import (
	"context"
	"flag"
	"maps"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/scripts/prove/proof"
)

// options are the flags.
type options struct{ file, not string }

// Proof is the command that scripts/prove runs.
func Proof() proof.Proof {
	var o options
	return proof.Proof{
		Name: "hostile", Only: "cases", List: list,
		Tries: "hostile inputs: callers, requests, histories, responses of providers",
		Takes: "a minute",
		About: `It runs the cases of testdata, and those of the file that HOSTILE_CASES names. A case about a part that
does not exist is skipped. A finding shows the case's input, the expected result and the actual one.`,
		Flags: func(f *flag.FlagSet) {
			f.StringVar(&o.file, "cases", "", "the `file` with the cases (default: all of testdata)")
			f.StringVar(&o.not, "not", "", "omit the case with this `id`")
		},
		Run: func(ctx context.Context, r *proof.Run) error { return execute(ctx, o, r) },
	}
}

// list counts the committed cases by category.
func list() (counts []proof.Count, err error) {
	total, built := 0, 0
	of := map[string]int{}
	cases, err := committedCases()
	for _, c := range cases {
		total++
		of[c.Category]++
		if missing(c) == "" {
			built++
		}
	}
	counts = []proof.Count{{N: total, What: "cases of testdata"}, {N: built, What: "of them about existing parts"},
		{N: len(of), What: "categories:"}}
	for _, category := range slices.Sorted(maps.Keys(of)) {
		counts = append(counts, proof.Count{N: of[category], What: category})
	}
	return counts, err
}

func execute(ctx context.Context, o options, r *proof.Run) error {
	cases, err := o.cases(r)
	if err != nil {
		return err
	}
	net, err := goOffline()
	if err != nil {
		return err
	}
	report(r, runAll(ctx, net, cases))
	return net.Close()
}

// cases returns the selected cases.
func (o options) cases(r *proof.Run) (cases []Case, err error) {
	if o.file != "" {
		cases, err = readCases(o.file)
	} else {
		cases, err = allCases()
	}
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(cases, func(c Case) bool { return c.ID == o.not || !r.Selects(c.ID) }), nil
}

// report reports each case, and a table of the categories.
func report(r *proof.Run, results []Result) {
	type line struct{ passed, failed, notYet int }
	table := map[string]*line{}
	var names []string
	for _, res := range results {
		l := table[res.Category]
		if l == nil {
			l = &line{}
			table[res.Category], names = l, append(names, res.Category)
		}
		switch {
		case res.NotYet != "":
			l.notYet++
			r.Skipped(res.ID, "not yet applicable: %s", res.NotYet)
		case len(res.Wrong) > 0:
			l.failed++
			r.Finding(res.ID, "%s: %s\n  %s\n  want: %s %d, %s\n  came: %s", res.Target, strings.Join(res.Wrong, "; "),
				res.Input, res.Expect.Class, res.Expect.HTTP, res.Expect.Note, res.Came)
		default:
			l.passed++
			r.Held(res.ID, "%s: %s in %v%s", res.Target, res.Came, res.Took, res.Permitted)
			if res.Permitted != "" {
				r.Count("cases with another answer than the expected one, which is permitted", 1)
			}
		}
	}
	for _, name := range names {
		l := table[name]
		r.Note("%-12s %4d passed %4d failed %4d not yet", name, l.passed, l.failed, l.notYet)
	}
}
