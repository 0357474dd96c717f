// Command gauntlet takes a running Countersign through the cases at which agents with approvals fail, and prints what
// came of each beside what was measured for others.
//
//	go run ./scripts/prove/gauntlet                       at a local server of its own
//	go run ./scripts/prove/gauntlet -base URL             at a local server that runs already
//	go run ./scripts/prove/gauntlet -base URL -quick      the part that sends nothing: a smoke test
//
// A deployed server signs in no user for this command: -token and -token2, or GAUNTLET_TOKEN and GAUNTLET_TOKEN2, are
// ID tokens of two of its users, whose Google accounts are linked. There, only cases that carry nothing out are tried:
// each ends in a rejection or a cancel. What cannot be done from outside (tamper with the store, kill the process, set
// the clock) is covered by tests, which the table names.
//
// It exits with 0 when no case failed, with 1 when one did, and with 2 when it could not try.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/countersign-run/countersign/scripts/prove/gauntlet/trial"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := start(ctx, os.Args[1:], os.Stdout)
	stop()
	switch {
	case errors.Is(err, trial.ErrFailed):
		os.Exit(1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "gauntlet:", err)
		os.Exit(2)
	}
}

func start(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("gauntlet", flag.ContinueOnError)
	base := flags.String("base", "", "where the server answers; none: start a local one")
	short := flags.Bool("quick", false, "the smoke test: cases that send nothing")
	ana := flags.String("token", os.Getenv("GAUNTLET_TOKEN"), "ID token of a user of a deployed server")
	eve := flags.String("token2", os.Getenv("GAUNTLET_TOKEN2"), "ID token of another one")
	if err := flags.Parse(args); err != nil {
		return err
	}
	url := *base
	if url == "" {
		var stop func() error
		if url, stop, err = startDev(ctx); err != nil {
			return err
		}
		defer func() { err = cmp.Or(err, stop()) }()
	}
	cases := trial.Cases
	if *short {
		cases = trial.Quick()
	}
	return trial.Tour(ctx, url, *ana, *eve, cases, out)
}
