package trial

import (
	"context"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/scripts/prove/proof"
)

// A Tester runs the tests of a package whose names match the pattern of go test -run.
type Tester func(ctx context.Context, folder, pattern string) proof.Tested

// tests runs the tests that cover cases. All tests of a package run at once, when a case first needs one.
type tests struct {
	run   Tester
	cases []Case // cases whose tests can run
	went  map[selection]proof.Tested
}

// A selection is the tests of a package, or the subtests of one of them.
type selection struct{ folder, whole string }

// selected returns the selection of a test such as "shared/engine/loop: TestScenarios/edit", and the test's name in it.
func selected(test string) (of selection, name string) {
	folder, name, _ := strings.Cut(test, ": ")
	whole, part, parted := strings.Cut(name, "/")
	if parted {
		return selection{folder, whole}, part
	}
	return selection{folder, ""}, name
}

// at returns the result of a case's tests.
func (t tests) at(ctx context.Context, c Case) Row {
	row := Row{c, strings.Join(c.Tests, "; "), heldBy}
	for _, test := range c.Tests {
		of, name := selected(test)
		if of.whole != "" {
			name = of.whole + "/" + name
		}
		is := func(other string) bool { return other == name || strings.HasPrefix(other, name+"/") }
		switch went := t.played(ctx, of); {
		case went.Failed && (len(went.By) == 0 || slices.ContainsFunc(went.By, is)):
			return Row{c, test + " fails: " + went.Last(), failed}
		case slices.ContainsFunc(went.Left, is):
			row.Verdict, row.Got = byTests, test+", which was skipped"
		}
	}
	return row
}

func (t tests) played(ctx context.Context, of selection) proof.Tested {
	if went, done := t.went[of]; done {
		return went
	}
	var names []string
	for _, c := range t.cases {
		for _, test := range c.Tests {
			if other, name := selected(test); c.Try == nil && other == of {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	pattern := "^(" + strings.Join(slices.Compact(names), "|") + ")$"
	if of.whole != "" {
		pattern = "^" + of.whole + "$/" + pattern
	}
	t.went[of] = t.run(ctx, of.folder, pattern)
	return t.went[of]
}
