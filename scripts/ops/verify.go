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
	var v verification
	flags.StringVar(&v.run, "run", "", "check only the chain of this `RUN`, without the log")
	flags.StringVar(&v.saved, "checkpoint", "", "a `FILE` of ops checkpoint save, which the log must still contain")
	flags.StringVar(&v.folder, "log", "", "the `FOLDER` of a copy of the log, instead of the deployment's log")
	flags.StringVar(&v.exported, "entries", "", "a `FOLDER` of ops audit export with all days, instead of the store")
	return func(ctx context.Context, o *operator, _ []string) error {
		switch {
		case v.run != "" && !run.ValidID(v.run):
			return errors.New("-run is not a valid run ID")
		case v.run != "" && v.saved+v.folder+v.exported != "":
			return errors.New("-run checks no log, so -checkpoint, -log and -entries do not apply")
		}
		found, err := o.verify(ctx, v)
		if found && err == nil {
			return errFailed
		}
		return err
	}
}

// verification has the flags of verify.
type verification struct{ run, saved, folder, exported string }

// verify checks the audit of the store, or of an export, and prints the result.
func (o *operator) verify(ctx context.Context, v verification) (found bool, err error) {
	c := checker{now: time.Now, out: o.out}
	if v.exported != "" {
		cfg, err := config.Load(o.getenv) // the machine needs no access to the store
		if err == nil {
			err = o.readLog(ctx, cfg, &c, v)
		}
		if err == nil {
			err = c.export(v.exported)
		}
		return c.result(err)
	}
	cfg, err := o.config(config.Store)
	if err != nil {
		return false, err
	}
	if c.store, err = app.OpenStore(ctx, cfg, time.Now); err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, c.store.Close()) }()
	if v.run != "" {
		err = c.one(ctx, v.run)
	} else if err = o.readLog(ctx, cfg, &c, v); err == nil {
		err = c.all(ctx)
	}
	return c.result(err)
}

// result prints the differences from the log and the summary, unless the check failed.
func (c *checker) result(err error) (found bool, _ error) {
	if err != nil {
		return false, err
	}
	c.reportLog()
	return c.problems > 0, c.summary()
}

// readLog reads the log with which the check compares the store.
func (o *operator) readLog(ctx context.Context, cfg config.Config, c *checker, v verification) error {
	log, key, err := openLog(ctx, cfg, v.folder)
	switch {
	case err != nil:
		return err
	case log == nil && v.saved+v.folder != "":
		return errNoLog
	case log == nil:
		return nil
	}
	keys, err := translog.ParseKeys(key)
	if err != nil {
		return err
	}
	var kept []translog.Kept
	if v.saved != "" {
		k, err := readKept(v.saved, keys)
		if err != nil {
			return err
		}
		kept = append(kept, k)
	}
	return c.begin(ctx, log, keys, kept...)
}
