package main

import (
	"context"
	"errors"
	"flag"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/receipts/translog"
)

// verify checks the audit, compares it with the log of its hashes, and compares users' own chains with their documents.
// It names each revoked permission that a document grants again. It only reads, so you can run it while the functions
// run. Each problem is one line that names the run and the entry.
func verify(flags *flag.FlagSet) runFunc {
	runID := flags.String("run", "", "check only the chain of this `RUN`, without the log")
	saved := flags.String("checkpoint", "", "a `FILE` of ops checkpoint save, which the log must still contain")
	folder := flags.String("log", "", "the `FOLDER` of a copy of the log, instead of the log in DATA_DIR")
	return func(ctx context.Context, o *operator, _ []string) error {
		if *runID != "" && !run.ValidID(*runID) {
			return errors.New("-run is not a valid run ID")
		}
		if *runID != "" && *saved+*folder != "" {
			return errors.New("-run checks no log, so -checkpoint and -log do not apply")
		}
		found, err := o.verify(ctx, *runID, *saved, *folder)
		if found && err == nil {
			return errFailed
		}
		return err
	}
}

// verify opens the store, checks the audit, and prints the result.
func (o *operator) verify(ctx context.Context, runID, saved, folder string) (found bool, err error) {
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
	} else if err = o.readLog(ctx, cfg, &c, saved, folder); err == nil {
		err = c.all(ctx)
	}
	if err != nil {
		return false, err
	}
	c.reportLog()
	return c.problems > 0, c.summary()
}

// readLog reads the log with which the check compares the store.
func (o *operator) readLog(ctx context.Context, cfg config.Config, c *checker, saved, folder string) error {
	log, key, err := openLog(ctx, cfg, folder)
	switch {
	case err != nil:
		return err
	case log == nil && saved+folder != "":
		return errNoLog
	case log == nil:
		return nil
	}
	keys, err := translog.ParseKeys(key)
	if err != nil {
		return err
	}
	var kept []translog.Kept
	if saved != "" {
		k, err := readKept(saved, keys)
		if err != nil {
			return err
		}
		kept = append(kept, k)
	}
	return c.begin(ctx, log, keys, kept...)
}
