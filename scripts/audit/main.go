// Command audit checks the audit: that no entry was changed, removed, moved, inserted or cut off.
//
//	go run ./scripts/audit verify            every run
//	go run ./scripts/audit verify -run ID    one run
//
// It reads the store that the environment names, as the functions do (STORE, DATA_DIR, GOOGLE_CLOUD_PROJECT,
// FIRESTORE_DATABASE, FIRESTORE_EMULATOR_HOST), and writes nothing to it. It may be used while the functions run.
//
// Each problem is one line that names the run and the entry. It exits with 0 when there is none, with 1 when there is
// one, and with 2 when it could not read the store.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"time"

	"github.com/countersign-run/countersign/shared/agent"
	"github.com/countersign-run/countersign/shared/app"
	_ "github.com/countersign-run/countersign/shared/app/embedded"
	"github.com/countersign-run/countersign/shared/config"
)

// The exit statuses.
const (
	intact = iota
	tampered
	unable
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, getenv func(string) string, out, errs io.Writer) int {
	runID, err := parse(args, errs)
	if err != nil {
		fmt.Fprintln(errs, "audit:", err)
		return unable
	}
	found, err := verify(ctx, runID, getenv, out)
	switch {
	case err != nil:
		fmt.Fprintln(errs, "audit:", err)
		return unable
	case found:
		return tampered
	}
	return intact
}

func parse(args []string, errs io.Writer) (runID string, err error) {
	if len(args) == 0 || args[0] != "verify" {
		return "", errors.New("the one command is: verify [-run ID]")
	}
	flags := flag.NewFlagSet("audit verify", flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.StringVar(&runID, "run", "", "check this run alone")
	if err := flags.Parse(args[1:]); err != nil {
		return "", err
	}
	if flags.NArg() > 0 || runID != "" && !agent.ValidID(runID) {
		return "", errors.New("verify takes -run and the id of a run, and nothing else")
	}
	return runID, nil
}

// verify opens the store, checks it, and prints the result.
func verify(ctx context.Context, runID string, getenv func(string) string, out io.Writer) (found bool, err error) {
	cfg, err := config.Load(getenv, config.Store)
	if err != nil {
		return false, err
	}
	if cfg.Store == "embedded" {
		if _, err := os.Stat(cfg.DataDir); err != nil { // opening it would create an empty one, which has no problem
			return false, fmt.Errorf("DATA_DIR holds %q, where there is no store", cfg.DataDir)
		}
	}
	st, err := app.OpenStore(ctx, cfg, time.Now)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	c := checker{store: st, out: out}
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
