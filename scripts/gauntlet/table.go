package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"strings"
	"time"
)

// The verdicts of a row.
const (
	passed   = "pass"
	failed   = "FAIL"
	byTests  = "by tests"               // nobody outside can do it: the named tests do
	unseen   = "needs the local server" // nobody may send mail from here, or see what was sent
	notThere = "does not exist"
)

// Row is what came of a case.
type Row struct {
	Case
	Got     string
	Verdict string
}

// patience is how long a case may take.
const patience = time.Minute

// try has the server go through a case.
func (c Case) try(ctx context.Context, at Server) Row {
	_, local := at.(Mailbox)
	switch {
	case c.Absent != "":
		return Row{c, c.Absent, notThere}
	case c.Try == nil:
		return Row{c, strings.Join(c.Tests, "; "), byTests}
	case c.Effect && !local:
		return Row{c, "", unseen}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	got, err := c.Try(ctx, &session{Server: at, name: c.Number + "-" + strings.ToLower(rand.Text()[:8])})
	switch {
	case err != nil:
		return Row{c, err.Error(), failed}
	case got != c.Want:
		return Row{c, got, failed}
	}
	return Row{c, got, passed}
}

// run goes through the cases in order, tells each as it comes, and reports whether none failed.
func run(ctx context.Context, at Server, cases []Case, out io.Writer) bool {
	count := map[string]int{}
	fmt.Fprintln(out, "| case | what | expected | got | verdict | peers |\n| --- | --- | --- | --- | --- | --- |")
	for _, c := range cases {
		r := c.try(ctx, at)
		count[r.Verdict]++
		if r.Verdict == passed {
			r.Got = "as expected"
		}
		fmt.Fprintf(out, "| %s | %s | %s | %s | %s | %s |\n", r.Number, r.Name, r.Want, strings.ReplaceAll(r.Got, "|", "/"), r.Verdict, r.Peers)
	}
	fmt.Fprintf(out, "\n%d pass, %d fail, %d are held by tests alone, %d need the local server, %d concern what does not exist here.\n",
		count[passed], count[failed], count[byTests], count[unseen], count[notThere])
	return count[failed] == 0
}

// quick are the cases of the smoke test.
func quick(all []Case) (some []Case) {
	for _, c := range all {
		if c.Quick {
			some = append(some, c)
		}
	}
	return some
}
