// Package trial takes a running Countersign through the cases at which agents with approvals fail, from outside, as its
// users do.
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
	byTests  = "by tests"               // it cannot be done from outside: the named tests do it
	unseen   = "needs the local server" // no mail may be sent from here, or its mailbox cannot be read
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

// At tries the case at the server.
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

// ErrFailed means that a case had another outcome than it must have.
var ErrFailed = errors.New("a case failed")

// Tour takes the server at base, local or deployed, through the cases, with ID tokens of two of its users where it is
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

// run tries the cases in order, reports each as it ends, and reports whether none failed.
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

// Quick returns the cases of the smoke test of a deployment: they send nothing.
func Quick() (some []Case) {
	for _, c := range Cases {
		if c.Quick {
			some = append(some, c)
		}
	}
	return some
}
