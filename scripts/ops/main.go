// Command ops has the commands for setting up, operating and checking Countersign.
//
//	go run ./scripts/ops setup                             prepare a checkout to call Gemini, and say what is next
//	go run ./scripts/ops verify [-run RUN]                 check the audit of a run, or of every run
//	go run ./scripts/ops dead-letters list                 what resume refused as often as it is delivered
//	go run ./scripts/ops dead-letters replay -yes          ask for those runs once more
//	go run ./scripts/ops dead-letters drop -yes            forget those messages; the sweep still finds what is due
//	go run ./scripts/ops dead-letters list -events         what a webhook, or people's devices, did not take
//	go run ./scripts/ops waiting [-oldest N]               how many runs wait for what, by age, and the oldest
//	go run ./scripts/ops redrive RUN                       ask for a run to be moved, and say where it stands
//	go run ./scripts/ops quarantine                        after a backup was restored: have every open run ask again
//	go run ./scripts/ops story RUN [-json] [-reveal]       all that is known of a run
//	go run ./scripts/ops revoke USER -yes                  disable a user and unlink their account
//	go run ./scripts/ops restore USER -yes                 let them in again
//	go run ./scripts/ops delete-user USER -yes             delete a user's data; the audit stays and verifies
//	go run ./scripts/ops export USER                       all that is kept of a user, as lines of JSON
//	go run ./scripts/ops action-key NAME                   the key of an endpoint (binding key: derived)
//	go run ./scripts/ops receipt verify FILE [-keys FILE]  say whether a receipt is true, false or changed, offline
//	go run ./scripts/ops receipt-keys                      the public keys by which receipts are known
//	go run ./scripts/ops smoke BASE -token T [-token2 T]   try a deployment, sending nothing
//
// Each command prints its usage and flags with -h. They read the environment as the functions do, and work on the store
// and the queue that it names; the embedded ones too, while scripts/dev runs. A command that deletes or disables only
// prints what it would do, unless -yes is set.
//
// Ops exits with 0 on success; with 1 if the answer is no and has been printed: something is left to do, the audit was
// tampered with, a case of the smoke test failed, or Gemini is not set up; and with 2 if it could not find out.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/accounts"
	_ "github.com/countersign-run/countersign/shared/app/embedded"
	"github.com/countersign-run/countersign/shared/app/github"
	"github.com/countersign-run/countersign/shared/app/pubsub"
	"github.com/countersign-run/countersign/shared/app/tools"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/telemetry/obs"
)

// errFailed means that the answer of a command is no, which has been printed. It is returned as it is, never wrapped.
var errFailed = errors.New("not all is well, which has been printed")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := execute(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	stop()
	os.Exit(status(err, os.Stderr))
}

// status returns the exit status for the result of run, and prints an error that has not been printed.
func status(err error, errs io.Writer) int {
	switch err {
	case nil:
		return 0
	case errFailed:
		return 1
	}
	fmt.Fprintln(errs, "ops:", err)
	return 2
}

// command is one command. It takes flags before and after its arguments.
type command struct {
	args  string // the names of its arguments
	short string // what it does, for its usage
	make  func(*flag.FlagSet) runFunc
}

// runFunc carries out a command with its arguments, whose number has been checked.
type runFunc func(context.Context, *operator, []string) error

var commands = map[string]command{
	"setup":  {"", "Prepare a checkout to call Gemini, check its key, and say what is next.", setup},
	"verify": {"", "Check that no entry of the audit was changed, removed, moved, inserted or cut off.", verify},
	"dead-letters": {"list|replay|drop", "Look after the messages that resume, or who is told, has refused too often.",
		deadLetters},
	"waiting":      {"", "Say what waits, by age: how many runs for what, and which are the oldest.", waiting},
	"redrive":      {"RUN", "Ask for a run to be moved, and say where it stands.", redrive},
	"quarantine":   {"", "After a backup was restored: have every open run ask its user before it acts.", quarantine},
	"story":        {"RUN", "Tell all that is known of a run.", story},
	"revoke":       {"USER", "Disable a user and unlink their account.", revoke},
	"restore":      {"USER", "Let a disabled user in again.", restore},
	"delete-user":  {"USER", "Delete a user's data; the audit stays and verifies.", deleteUser},
	"export":       {"USER", "Print all that is kept of a user, as lines of JSON.", export},
	"action-key":   {"NAME", "Print the key of the endpoint of a declared action (binding key: derived).", actionKey},
	"receipt":      {"verify FILE", "Say offline whether a receipt is true, false or changed.", receiptOf},
	"receipt-keys": {"", "Print the public keys by which receipts are known, those of RECEIPT_JWKS too.", receiptKeys},
	"smoke":        {"BASE", "Try a deployment, sending nothing.", smoke},
}

// operator is the environment of a command.
type operator struct {
	getenv func(string) string
	out    io.Writer
	errs   io.Writer
	open   *app.App // see app
}

func (o *operator) printf(format string, args ...any) error {
	_, err := fmt.Fprintf(o.out, format+"\n", args...)
	return err
}

// run carries out the command that args name. A request for help writes its usage to out, and does nothing else.
func execute(ctx context.Context, args []string, getenv func(string) string, out, errs io.Writer) error {
	if len(args) > 0 && slices.Contains([]string{"-h", "-help", "--help", "help"}, args[0]) {
		return usage(out)
	}
	if len(args) == 0 || commands[args[0]].make == nil {
		return fmt.Errorf("the commands are %s; -h says what each does",
			strings.Join(slices.Sorted(maps.Keys(commands)), ", "))
	}
	name, c := args[0], commands[args[0]]
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(io.Discard) // an error is returned, and help goes to out
	do := c.make(flags)
	given, err := parse(flags, args[1:])
	switch {
	case errors.Is(err, flag.ErrHelp):
		return c.usage(out, name, flags)
	case err != nil:
		return fmt.Errorf("%s: %w; -h prints its usage", name, err)
	case len(given) != len(strings.Fields(c.args)):
		return fmt.Errorf("%s takes %s; -h prints its usage", name, c.takes(flags))
	}
	o := &operator{getenv: getenv, out: out, errs: errs}
	err = do(ctx, o, given)
	if o.open == nil {
		return err
	}
	if closing := o.open.Close(); closing != nil {
		return errors.Join(err, closing)
	}
	return err
}

// parse accepts flags at any position: package flag stops at the first argument.
func parse(flags *flag.FlagSet, args []string) (given []string, err error) {
	for {
		if err := flags.Parse(args); err != nil {
			return nil, err
		}
		if flags.NArg() == 0 {
			return given, nil
		}
		given, args = append(given, flags.Arg(0)), flags.Args()[1:]
	}
}

// config reads the environment for the parts that a command needs.
func (o *operator) config(parts ...config.Part) (config.Config, error) {
	cfg, err := config.Load(o.getenv, parts...)
	if err != nil {
		return cfg, err
	}
	if cfg.Store == "embedded" {
		if _, err := os.Stat(cfg.DataDir); err != nil { // opening it would create an empty one
			return cfg, fmt.Errorf("DATA_DIR holds %q, where there is no store", cfg.DataDir)
		}
	}
	return cfg, nil
}

// app opens the store, the queue and the linked accounts. It has no model, and carries out no effects.
func (o *operator) app(ctx context.Context) (*app.App, error) {
	cfg, err := o.config(config.Store, config.Queue)
	if err != nil {
		return nil, err
	}
	a, err := app.New(ctx, cfg, obs.New(o.errs, cfg.Log()),
		app.With(pubsub.Part, tools.Part, accounts.Part, github.Part), app.WithClock(time.Now))
	if err != nil {
		return nil, err
	}
	o.open = a
	return a, nil
}
