// Package gauntlet runs the cases in which agents with approvals typically fail, on a running Countersign.
package gauntlet

import (
	"context"
	"errors"
	"flag"
	"os"

	"github.com/countersign-run/countersign/scripts/prove/gauntlet/trial"
	"github.com/countersign-run/countersign/scripts/prove/proof"
)

// options are the flags.
type options struct {
	base, token, token2 string
	quick               bool
}

// Proof is the command that scripts/prove runs.
func Proof() proof.Proof {
	o := options{token: os.Getenv("GAUNTLET_TOKEN"), token2: os.Getenv("GAUNTLET_TOKEN2")}
	return proof.Proof{
		Name: "gauntlet", Only: "cases, by their numbers", Each: true, List: list,
		Tries: "cases in which agents with approvals typically fail, on a local or deployed server",
		Takes: "a few minutes; all but half a minute is for the tests",
		About: `Without -base it starts a local server of its own. A deployed server signs in no user for this command: -token and
-token2, or GAUNTLET_TOKEN and GAUNTLET_TOKEN2, are ID tokens of two of its users, whose Google accounts are linked.
There, only cases that carry nothing out are tried: each ends in a rejection or a cancel. What cannot be done from
outside (tamper with the store, kill the process, set the clock) is held by tests, which are named. Without -base they
are run, which takes minutes.`,
		Flags: func(f *flag.FlagSet) {
			f.StringVar(&o.base, "base", "", "the server's `URL`; without it, a local server is started")
			f.BoolVar(&o.quick, "quick", false, "the smoke test of a deployment: only cases that send nothing")
			f.StringVar(&o.token, "token", o.token, "ID `token` of a user of a deployed server")
			f.StringVar(&o.token2, "token2", o.token2, "ID `token` of a second user")
		},
		Run: func(ctx context.Context, r *proof.Run) error { return execute(ctx, o, r) },
	}
}

func list() ([]proof.Count, error) {
	outside, tests, absent := 0, 0, 0
	for _, c := range trial.Cases {
		switch {
		case c.Absent != "":
			absent++
		case c.Try == nil:
			tests++
		default:
			outside++
		}
	}
	return []proof.Count{{N: len(trial.Cases), What: "cases"}, {N: outside, What: "of them tried from outside"},
		{N: tests, What: "held by named tests alone, which go test runs"},
		{N: absent, What: "about what does not exist here"},
		{N: len(trial.Quick()), What: "in the smoke test of a deployment (-quick)"}}, nil
}

func execute(ctx context.Context, o options, r *proof.Run) (err error) {
	var run trial.Tester
	if o.base == "" {
		run = func(ctx context.Context, folder, pattern string) proof.Tested {
			return proof.GoTest(ctx, ".", "-vet=off", "-run="+pattern, "./"+folder)
		}
		var stop func() error
		if o.base, stop, err = startDev(ctx); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	cases := trial.Cases
	if o.quick {
		cases = trial.Quick()
	}
	return trial.Tour(ctx, o.base, o.token, o.token2, cases, run, r)
}
