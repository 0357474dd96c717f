// Package trial has a running Countersign go through the cases at which agents with approvals fail, from outside, as
// its users do.
package trial

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// The verdicts of a row.
const (
	Passed   = "pass"
	failed   = "FAIL"
	byTests  = "by tests"               // nobody outside can do it: the named tests do
	unseen   = "needs the local server" // nobody may send mail from here, or see what was sent
	alone    = "needs a second user"
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

// At has the server go through the case.
func (c Case) At(ctx context.Context, at Server) Row {
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
	case errors.Is(err, errAlone):
		return Row{c, "", alone}
	case err != nil:
		return Row{c, err.Error(), failed}
	case got != c.Want:
		return Row{c, got, failed}
	}
	return Row{c, got, Passed}
}

// ErrFailed says that a case did not come out as it must.
var ErrFailed = errors.New("a case failed")

// Tour has the server at base, local or deployed, go through the cases, with ID tokens of two of its users where it is
// deployed, and writes a table. Its error is ErrFailed where a case failed, and another one where it could not try.
func Tour(ctx context.Context, base, token, token2 string, cases []Case, out io.Writer) error {
	base = strings.TrimSuffix(base, "/")
	if err := Healthy(ctx, base); err != nil {
		return err
	}
	if !run(ctx, find(ctx, base, token, token2), cases, out) {
		return ErrFailed
	}
	return nil
}

// run goes through the cases in order, tells each as it comes, and reports whether none failed.
func run(ctx context.Context, at Server, cases []Case, out io.Writer) bool {
	count := map[string]int{}
	fmt.Fprintln(out, "| case | what | expected | got | verdict | peers |\n| --- | --- | --- | --- | --- | --- |")
	for _, c := range cases {
		r := c.At(ctx, at)
		count[r.Verdict]++
		if r.Verdict == Passed {
			r.Got = "as expected"
		}
		fmt.Fprintf(out, "| %s | %s | %s | %s | %s | %s |\n", r.Number, r.Name, r.Want,
			strings.ReplaceAll(r.Got, "|", "/"), r.Verdict, r.Peers)
	}
	fmt.Fprintf(out, "\n%d pass, %d fail, %d are held by tests alone, %d need the local server, %d need a second "+
		"user, %d concern what does not exist here.\n",
		count[Passed], count[failed], count[byTests], count[unseen], count[alone], count[notThere])
	return count[failed] == 0
}

// Quick are the cases of the smoke test of a deployment: they send nothing.
func Quick() (some []Case) {
	for _, c := range Cases {
		if c.Quick {
			some = append(some, c)
		}
	}
	return some
}
