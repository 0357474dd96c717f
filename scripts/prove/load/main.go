// Command load measures Countersign as it is deployed: a separate worker process that answers over HTTP, with real
// tokens, over the fakes of shared/testkit.
//
//	go run ./scripts/prove/load NAME [-for 2m] [-clients 8] [-n 200] [-store embedded|firestore] [-out file.json]
//
// It prints one JSON object: what was measured, the figures, the target and whether it was met, and what limited it.
// Without a name it lists the measurements. It exits with 0 when the target was met, with 1 when it was not or when
// something is wrong in what the runs left behind, and with 2 when it could not measure.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"
)

// The exit statuses.
const (
	met = iota
	missed
	unable
)

// measurement is one line of the table of targets.
type measurement struct {
	name, what string
	options    options      // unless flags say otherwise
	configure  func(g *env) // before any worker is started
	run        func(ctx context.Context, g *env, r *Report) error
}

// options of a measurement; unused ones are left out of its report.
type options struct {
	For     time.Duration // how long the load lasts
	Clients int           // at once
	Count   int           // of prepared runs
	Store   string
}

var measurements = []measurement{
	{"L1", "plain runs", options{For: time.Minute, Clients: 8, Store: "firestore"}, nil, plain},
	{"L2", "plain runs on the embedded store", options{For: 30 * time.Second, Clients: 8, Store: "embedded"}, nil,
		plain},
	{"L3", "approval round trips", options{For: 2 * time.Minute, Clients: 8, Store: "embedded"}, nil, roundTrips},
	{"L4", "a race of decisions about each approval", options{Clients: 100, Count: 200, Store: "embedded"}, nil, race},
	{"L5", "approval round trips, each message delivered 5 times, 2 at once",
		options{For: time.Minute, Clients: 8, Store: "embedded"}, nil, storm},
	{"L6", "runs at once on one thread of one user", options{For: 10 * time.Second, Clients: 50, Store: "embedded"},
		nil, hotThread},
	{"L7", "open streams of 20 deltas a second", options{For: time.Minute, Clients: 200, Store: "embedded"}, nil,
		streams},
	{"L8", "a slow model", options{For: time.Minute, Clients: 100, Store: "embedded"}, nil, slowModel},
	{"L9", "a backlog of approvals", options{For: 10 * time.Minute, Clients: 8, Count: 5000, Store: "embedded"},
		sweepAsInTheCloud, backlog},
	{"L10", "outages of the store", options{For: 10 * time.Minute, Clients: 8, Store: "firestore"}, nil, outages},
	{"L11", "soak", options{For: 30 * time.Minute, Store: "embedded"}, expireSoon, soak},
}

func main() {
	if len(os.Args) == 2 && os.Args[1] == workerCommand {
		os.Exit(worker(os.Stderr))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func run(ctx context.Context, args []string, out, errs io.Writer) int {
	m, file, err := parse(args, errs)
	if err != nil {
		fmt.Fprintln(errs, "load:", err)
		return unable
	}
	r, err := m.measure(ctx)
	if err != nil {
		fmt.Fprintln(errs, "load:", err)
		return unable
	}
	if err := r.print(out, file); err != nil {
		fmt.Fprintln(errs, "load:", err)
		return unable
	}
	if !r.Met {
		return missed
	}
	return met
}

func parse(args []string, errs io.Writer) (m measurement, file string, err error) {
	if len(args) == 0 {
		return m, "", errors.New("which one?\n" + list())
	}
	i := slices.IndexFunc(measurements, func(m measurement) bool { return m.name == args[0] })
	if i < 0 {
		return m, "", fmt.Errorf("there is no %q\n%s", args[0], list())
	}
	m = measurements[i]
	flags := flag.NewFlagSet("load "+m.name, flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.DurationVar(&m.options.For, "for", m.options.For, "how long the load lasts")
	flags.IntVar(&m.options.Clients, "clients", m.options.Clients, "how many work at once")
	flags.IntVar(&m.options.Count, "n", m.options.Count, "how many approvals are prepared")
	flags.StringVar(&m.options.Store, "store", m.options.Store,
		"embedded or firestore (the emulator, with the Pub/Sub emulator)")
	flags.StringVar(&file, "out", "", "write the JSON object to this file, too")
	if err := flags.Parse(args[1:]); err != nil {
		return m, "", err
	}
	if flags.NArg() > 0 || m.options.Store != "embedded" && m.options.Store != "firestore" {
		return m, "", errors.New("after the name come flags alone, and the store is embedded or firestore")
	}
	return m, file, nil
}

func list() string {
	var b strings.Builder
	for _, m := range measurements {
		fmt.Fprintf(&b, "  %-4s %s\n", m.name, m.what)
	}
	return b.String()
}

// measure prepares the environment, measures, and checks the final state of the runs.
func (m measurement) measure(ctx context.Context) (r *Report, err error) {
	g, err := newEnv(ctx, m)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	r = newReport(m)
	if err := m.run(ctx, g, r); err != nil {
		return nil, err
	}
	if err := g.freeze(); err != nil {
		return nil, err
	}
	r.Problems, err = g.check(ctx)
	r.conclude(g)
	return r, err
}

// print writes the report.
func (r *Report) print(out io.Writer, file string) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(r); err != nil {
		return err
	}
	if file != "" {
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			return err
		}
	}
	_, err := out.Write(b.Bytes())
	return err
}
