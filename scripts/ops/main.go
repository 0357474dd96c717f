// Command ops has the commands for setting up, operating and checking Countersign.
//
//	go run ./scripts/ops setup                             write or check the Gemini configuration
//	go run ./scripts/ops verify [-run RUN]                 check the audit of a run, or of every run and the log
//	go run ./scripts/ops checkpoint save FILE              save the log's checkpoint, for verify -checkpoint FILE
//	go run ./scripts/ops dead-letters list                 messages that resume refused on every delivery
//	go run ./scripts/ops dead-letters replay -yes          publish those messages again
//	go run ./scripts/ops dead-letters drop -yes            delete those messages; the sweep still resumes due runs
//	go run ./scripts/ops dead-letters list -events         notifications that a webhook or a device refused
//	go run ./scripts/ops waiting [-oldest N]               count open runs by state and age, and list the oldest
//	go run ./scripts/ops hindsight -policy FILE            judge the recorded calls with another policy
//	go run ./scripts/ops hindsight -propose                report the cards that users always approve unread
//	go run ./scripts/ops redrive RUN                       publish a resume of a run, and print the run's state
//	go run ./scripts/ops restore -since TIME               after restoring a backup: quarantine it, and report
//	go run ./scripts/ops story RUN [-json] [-reveal]       print the events, approvals, outcomes and audit of a run
//	go run ./scripts/ops revoke USER -yes                  disable a user and unlink their accounts
//	go run ./scripts/ops enable USER -yes                  enable the user again
//	go run ./scripts/ops delete-user USER -yes             delete a user's data; the audit stays and verifies
//	go run ./scripts/ops export USER                       print the stored data of a user as lines of JSON
//	go run ./scripts/ops passkey code USER                 print a one-time code with which a user adds a passkey
//	go run ./scripts/ops passkey list USER                 list the user's passkeys
//	go run ./scripts/ops passkey remove USER -id ID        remove a passkey
//	go run ./scripts/ops audit export -out FOLDER          export all entries of the audit, by day, for BigQuery
//	go run ./scripts/ops action-key NAME                   print the key of an endpoint (binding key: derived)
//	go run ./scripts/ops rotate KEY                        print the next value of a key; -h names them
//	go run ./scripts/ops rotate KEY -retire                print the value without its earlier keys
//	go run ./scripts/ops receipt verify FILE [-keys FILE]  verify a receipt offline: true, false or changed
//	go run ./scripts/ops receipt-keys                      print the public keys that verify receipts
//	go run ./scripts/ops traffic hold                      print the commands that keep requests at their revisions
//	go run ./scripts/ops traffic move [-step N]            print the commands that send requests to a new release
//	go run ./scripts/ops traffic back                      print the commands that send them back
//	go run ./scripts/ops loadtest BASE -token T,T          put load on a deployment without approving anything
//	go run ./scripts/ops smoke BASE -token T [-token2 T]   test a deployment without sending anything
//
// -h prints the usage and flags of a command. The commands read the same environment variables as the functions, and
// work on the configured store and queue. They also work on the embedded store while scripts/dev runs. A command that
// deletes or disables something only prints what it would do, unless -yes is set.
//
// Ops exits with 0 on success. It exits with 1 if the command has printed a negative result: work is left, the audit
// was tampered with, a smoke test failed, or Gemini is not set up. It exits with 2 if the command could not run.
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

// errFailed reports that a command has printed a negative result. It is never wrapped.
var errFailed = errors.New("the command failed and has printed why")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := execute(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	stop()
	os.Exit(status(err, os.Stderr))
}

// status returns the exit status for the result of execute. It prints every error except errFailed.
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
	args  string // the names of the arguments
	short string // what the command does, for the usage
	make  func(*flag.FlagSet) runFunc
}

// runFunc runs a command with its arguments. Their number has been checked.
type runFunc func(context.Context, *operator, []string) error

var commands = map[string]command{
	"setup":  {"", "Write or check the Gemini configuration, and print the next step.", setup},
	"verify": {"", "Check that no entry of the audit was changed, removed, moved, inserted or cut off.", verify},
	"checkpoint": {"save FILE", "Save the log's checkpoint, after checking that the log contains the saved one.",
		checkpointOf},
	"dead-letters": {"list|replay|drop", "Manage messages that were refused too often.",
		deadLetters},
	"waiting":     {"", "Count open runs by state and age, and list the oldest.", waiting},
	"hindsight":   {"", "Judge recorded calls with another policy, or propose settings; only reads.", hindsight},
	"redrive":     {"RUN", "Publish a resume of a run, and print the run's state.", redrive},
	"restore":     {"", "After restoring a backup: quarantine its open runs, and report on them.", restore},
	"story":       {"RUN", "Print the events, approvals, outcomes and audit of a run.", story},
	"revoke":      {"USER", "Disable a user and unlink their accounts.", revoke},
	"enable":      {"USER", "Enable a disabled user.", enable},
	"delete-user": {"USER", "Delete a user's data; the audit stays and verifies.", deleteUser},
	"export":      {"USER", "Print the stored data of a user as lines of JSON.", export},
	"passkey": {"code|list|remove USER", "Let a user add a passkey, list a user's passkeys, or remove one.",
		passkeyOf},
	"audit":      {"export", "Export the audit of all users, by day, as lines of JSON for BigQuery.", auditOf},
	"action-key": {"NAME", "Print the key of the endpoint of a declared action (binding key: derived).", actionKey},
	"rotate": {"KEY",
		"Print the next value of a key: chat-key, token-key, action-key, webhook-keys, vapid-key, mcp-secrets, " +
			"decision-key, enrolment-key.", rotate},
	"receipt":      {"verify FILE", "Verify a receipt offline, and print true, false or changed.", receiptOf},
	"receipt-keys": {"", "Print the public keys that verify receipts, including those in RECEIPT_JWKS.", receiptKeys},
	"traffic": {"hold|move|back", "Print the gcloud commands that move requests between releases, in a safe order.",
		traffic},
	"loadtest": {"BASE", "Put load on a deployment without approving anything, and measure it.", loadTest},
	"smoke":    {"BASE", "Test a deployment without sending anything.", smoke},
}

// operator holds the environment and the output streams of a command.
type operator struct {
	getenv func(string) string
	out    io.Writer
	errs   io.Writer
	open   *app.App // set by app
}

func (o *operator) printf(format string, args ...any) error {
	_, err := fmt.Fprintf(o.out, format+"\n", args...)
	return err
}

// execute runs the command that args name. With a help flag it only prints the usage to out.
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
	flags.SetOutput(io.Discard) // errors are returned, and help goes to out
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

// parse accepts flags at any position. Package flag stops at the first argument.
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

// config reads the environment variables of the parts that a command needs.
func (o *operator) config(parts ...config.Part) (config.Config, error) {
	cfg, err := config.Load(o.getenv, parts...)
	if err != nil {
		return cfg, err
	}
	if cfg.Store == "embedded" {
		if _, err := os.Stat(cfg.DataDir); err != nil { // opening it would create an empty store
			return cfg, fmt.Errorf("DATA_DIR is %q, which contains no store", cfg.DataDir)
		}
	}
	return cfg, nil
}

// app opens the store, the queue, the linked accounts and further parts. The App has no model and performs no effects.
func (o *operator) app(ctx context.Context, further ...app.Part) (*app.App, error) {
	return o.opened(ctx, append([]app.Part{pubsub.Part, tools.Part, accounts.Part, github.Part}, further...)...)
}

// opened opens the store, the queue and the parts.
func (o *operator) opened(ctx context.Context, parts ...app.Part) (*app.App, error) {
	cfg, err := o.config(config.Store, config.Queue)
	if err != nil {
		return nil, err
	}
	a, err := app.New(ctx, cfg, obs.New(o.errs, cfg.Log()), app.With(parts...), app.WithClock(time.Now))
	if err != nil {
		return nil, err
	}
	o.open = a
	return a, nil
}
