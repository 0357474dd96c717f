// Package trial runs the cases in which agents with approvals typically fail, on a running Countersign, from outside as
// a user would.
package trial

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/testkit/await"
)

// The verdicts of a row.
const (
	Passed   = "pass"
	failed   = "FAIL"
	heldBy   = "held by"                // users cannot try it; the named tests cover it, and passed
	byTests  = "is held by tests"       // as above, but the tests did not run
	unseen   = "needs the local server" // no e-mail can be sent there, or the mailbox cannot be read
	alone    = "needs a second user"
	notThere = "does not exist"
)

// Row is the result of a case.
type Row struct {
	Case
	Got     string
	Verdict string
}

// patience limits the time of a case.
const patience = await.Most

// At runs the case on the server.
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
	s := &session{Server: at, ctx: ctx, name: c.Number + "-" + strings.ToLower(rand.Text()[:8])}
	var got string
	switch err := proof.Attempt(func() { got = c.Try(s) }); {
	case errors.Is(err, errAlone):
		return Row{c, "", alone}
	case err != nil:
		return Row{c, err.Error(), failed}
	case got != c.Want:
		return Row{c, got, failed}
	}
	return Row{c, got, Passed}
}

// Tour runs the selected cases on the server at base, and reports each result. A deployed server needs ID tokens of two
// users. Cases that cannot be tried from outside are covered by tests, which run executes; if run is nil, these cases
// are skipped. The error means that Tour could not run the cases.
func Tour(ctx context.Context, base, token, token2 string, cases []Case, run Tester, r *proof.Run) error {
	base = strings.TrimSuffix(base, "/")
	if err := Healthy(ctx, base); err != nil {
		return err
	}
	at := find(ctx, base, token, token2)
	cases = slices.DeleteFunc(slices.Clone(cases), func(c Case) bool { return !r.Selects(c.Number) })
	held := tests{run, cases, map[selection]proof.Tested{}}
	for _, c := range cases {
		if ctx.Err() != nil {
			break
		}
		row := c.At(ctx, at)
		if row.Verdict == byTests && run != nil {
			row = held.at(ctx, c)
		}
		switch row.Verdict {
		case Passed:
			r.Held(c.Number, "%s: %s%s", c.Name, c.Want, peers(c))
		case heldBy:
			r.Held(c.Number, "%s: held by %s%s", c.Name, row.Got, peers(c))
		case failed:
			r.Finding(c.Number, "%s: %s; want %s", c.Name, row.Got, c.Want)
		default:
			r.Skipped(c.Number, "%s: it %s%s", c.Name, strings.TrimSuffix(row.Verdict+": "+row.Got, ": "), peers(c))
		}
	}
	return nil
}

// peers describes measurements of other frameworks.
func peers(c Case) string {
	if c.Peers == "" {
		return ""
	}
	return " (others: " + c.Peers + ")"
}

// Quick returns the cases of the smoke test of a deployment, which send nothing.
func Quick() (some []Case) {
	for _, c := range Cases {
		if c.Quick {
			some = append(some, c)
		}
	}
	return some
}
