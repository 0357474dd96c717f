// Command measure prints figures about the readability of this module's code: the groups of packages and their imports,
// the length and nesting of functions, and the ratio of test code to product code.
//
//	go run ./scripts/measure [folder of the module]
//
// With -sample it instead prints doc comments, paragraphs of pages, and messages. A seed selects them. Somebody who did
// not write them should understand each one on the first reading:
//
//	go run ./scripts/measure -sample 7
package main

import (
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	seed := flag.Uint64("sample", 0, "print a sample of prose, drawn by this `seed`, instead of figures")
	flag.Parse()
	root := "."
	if flag.NArg() > 0 {
		root = flag.Arg(0)
	}
	var err error
	if *seed > 0 {
		err = sample(os.Stdout, root, *seed)
	} else {
		err = measure(os.Stdout, root)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

// measure writes one line for each measure of the module in a folder.
func measure(w io.Writer, root string) error {
	t, err := read(root)
	if err != nil {
		return err
	}
	groups := map[string]bool{}
	for _, p := range t.packages {
		groups[p.group()] = true
	}
	within, between := t.arrows()
	lines, depth := t.functions()
	rows := []struct {
		what  string
		value any
	}{
		{"groups at the first level of shared, without testkit", len(groups)},
		{"packages of shared", len(t.packages)},
		{"arrows between groups", len(between)},
		{"arrows between packages of a group", within},
		{"functions", len(lines)},
		{"lines of a function, median", quantile(lines, 0.5)},
		{"lines of a function, 99th percentile", quantile(lines, 0.99)},
		{"deepest nesting of a function", depth},
		{"lines of the product", t.product},
		{"lines of tests and harness for each of the product",
			fmt.Sprintf("%.1f", float64(t.tests)/float64(t.product))},
	}
	for _, r := range rows {
		if _, err := fmt.Fprintf(w, "%v\t%s\n", r.value, r.what); err != nil {
			return err
		}
	}
	return nil
}

// quantile returns the value below which a share of the sorted values lies.
func quantile(sorted []int, share float64) int {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(share*float64(len(sorted))), len(sorted)-1)]
}
