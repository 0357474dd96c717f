package main

import (
	"context"
	"errors"
	"flag"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/config"
)

// verify checks the audit, and compares users' own chains with their documents: it names each revoked permission that a
// document grants again. It only reads the store, so you can run it while the functions run. Each problem is one line
// that names the run and the entry.
func verify(flags *flag.FlagSet) runFunc {
	runID := flags.String("run", "", "check only the chain of this `RUN`")
	return func(ctx context.Context, o *operator, _ []string) error {
		if *runID != "" && !run.ValidID(*runID) {
			return errors.New("-run is not a valid run ID")
		}
		found, err := o.verify(ctx, *runID)
		if found && err == nil {
			return errFailed
		}
		return err
	}
}

// verify opens the store, checks the audit, and prints the result.
func (o *operator) verify(ctx context.Context, runID string) (found bool, err error) {
	cfg, err := o.config(config.Store)
	if err != nil {
		return false, err
	}
	st, err := app.OpenStore(ctx, cfg, time.Now)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	c := checker{store: st, now: time.Now, out: o.out}
	if runID != "" {
		err = c.one(ctx, runID)
	} else {
		err = c.all(ctx)
	}
	if err != nil {
		return false, err
	}
	return c.problems > 0, c.summary()
}
