// Command ops has the commands for operating Countersign.
//
//	go run ./scripts/ops dead-letters list                 what resume refused as often as it is delivered
//	go run ./scripts/ops dead-letters replay -yes          ask for those runs once more
//	go run ./scripts/ops dead-letters drop -yes            forget those messages; the sweep still finds what is due
//	go run ./scripts/ops redrive RUN                       ask for a run to be moved, and say where it stands
//	go run ./scripts/ops story RUN [-json] [-reveal]       all that is known of a run
//	go run ./scripts/ops revoke USER -yes                  shut a user out and unlink their account
//	go run ./scripts/ops restore USER -yes                 let them in again
//	go run ./scripts/ops delete-user USER -yes             delete a user's data; the audit stays and verifies
//	go run ./scripts/ops export USER                       all that is kept of a user, as lines of JSON
//	go run ./scripts/ops action-key NAME                   the key of an endpoint (binding key: derived)
//	go run ./scripts/ops smoke BASE -token T [-token2 T]   try a deployment, sending nothing
//
// It reads the environment as the functions do, and works on the store and the queue that it names; the embedded ones
// too, while scripts/dev runs. A command that deletes or disables only prints what it would do, unless -yes is set.
//
// It exits with 0 on success, with 1 when something is left to do or a case of the smoke test failed, and with 2 when
// it could not read the store or the queue.
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
	"github.com/countersign-run/countersign/shared/app/pubsub"
	"github.com/countersign-run/countersign/shared/app/tools"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/obs"
)

// errLeft means that something is left to do, which has been printed.
var errLeft = errors.New("something is left to do")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	stop()
	switch {
	case errors.Is(err, errLeft):
		os.Exit(1)
	case err != nil:
		fmt.Fprintln(os.Stderr, "ops:", err)
		os.Exit(2)
	}
}

// command is one command. It takes flags before and after its arguments.
type command struct {
	args string // the names of its arguments
	make func(*flag.FlagSet) func(context.Context, *operator, []string) error
}

var commands = map[string]command{
	"action-key":   {"NAME", actionKey},
	"dead-letters": {"list|replay|drop", deadLetters},
	"redrive":      {"RUN", redrive},
	"story":        {"RUN", story},
	"revoke":       {"USER", revoke},
	"restore":      {"USER", restore},
	"delete-user":  {"USER", deleteUser},
	"export":       {"USER", export},
	"smoke":        {"BASE", smoke},
}

// operator is the environment of a command.
type operator struct {
	getenv func(string) string
	out    io.Writer
	errs   io.Writer
	open   *app.App // see people
}

func (d *operator) say(format string, args ...any) error {
	_, err := fmt.Fprintf(d.out, format+"\n", args...)
	return err
}

func run(ctx context.Context, args []string, getenv func(string) string, out, errs io.Writer) error {
	if len(args) == 0 || commands[args[0]].make == nil {
		return fmt.Errorf("the commands are %s", strings.Join(slices.Sorted(maps.Keys(commands)), ", "))
	}
	c := commands[args[0]]
	flags := flag.NewFlagSet("ops "+args[0], flag.ContinueOnError)
	flags.SetOutput(errs)
	do := c.make(flags)
	given, err := parse(flags, args[1:])
	if err != nil {
		return err
	}
	if want := len(strings.Fields(c.args)); len(given) != want {
		return fmt.Errorf("%s takes %s and flags, and nothing else", args[0], c.args)
	}
	d := &operator{getenv: getenv, out: out, errs: errs}
	err = do(ctx, d, given)
	if d.open != nil {
		err = errors.Join(err, d.open.Close())
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
func (d *operator) config(parts ...config.Part) (config.Config, error) {
	cfg, err := config.Load(d.getenv, parts...)
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

// people opens the store, the queue and the linked accounts. It has no model, and carries out no effects.
func (d *operator) people(ctx context.Context) (*app.App, error) {
	cfg, err := d.config(config.Store, config.Queue)
	if err != nil {
		return nil, err
	}
	a, err := app.New(ctx, cfg, obs.New(d.errs, cfg.Log()), app.With(pubsub.Part, tools.Part, accounts.Part),
		app.WithClock(time.Now))
	if err != nil {
		return nil, err
	}
	d.open = a
	return a, nil
}
