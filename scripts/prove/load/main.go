// Package load measures Countersign as it is deployed: separate worker processes that serve HTTP and check real tokens,
// with the fakes of shared/testkit as their providers.
package load

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"time"

	"github.com/countersign-run/countersign/scripts/prove/proof"
)

// measurement is one row of the table of targets.
type measurement struct {
	name, what string
	options    options      // the defaults of the flags
	configure  func(g *env) // before any worker is started
	run        func(ctx context.Context, g *env, r *Report)
}

// options are the options of a measurement. Its report leaves out the ones that it does not use.
type options struct {
	For     time.Duration // how long the load lasts
	Clients int           // concurrent clients
	Count   int           // number of prepared runs
	Store   string
	Seed    uint64
}

var measurements = []measurement{
	{"L1", "plain runs", options{For: time.Minute, Clients: 8, Store: "firestore"}, nil, plain},
	{"L2", "plain runs on the embedded store", options{For: 30 * time.Second, Clients: 8, Store: "embedded"}, nil,
		plain},
	{"L3", "approval round trips", options{For: 2 * time.Minute, Clients: 8, Store: "embedded"}, inOneProcess,
		roundTrips},
	{"L4", "a race of decisions about each approval", options{Clients: 100, Count: 200, Store: "embedded"}, nil, race},
	{"L5", "approval round trips, each message delivered 5 times, 2 at once",
		options{For: time.Minute, Clients: 8, Store: "embedded"}, nil, storm},
	{"L6", "runs at once on one thread of one user", options{For: 10 * time.Second, Clients: 50, Store: "embedded"},
		nil, hotThread},
	{"L7", "open streams of 20 deltas a second", options{For: time.Minute, Clients: 200, Store: "embedded"}, nil,
		streams(ownFace)},
	{"L8", "a slow model", options{For: time.Minute, Clients: 100, Store: "embedded"}, nil, slowModel},
	{"L9", "a backlog of approvals", options{For: 10 * time.Minute, Clients: 8, Count: 5000, Store: "embedded"},
		sweepAsInTheCloud, backlog},
	{"L10", "outages of the store", options{For: 10 * time.Minute, Clients: 8, Store: "firestore"}, nil, outages},
	{"L11", "soak", options{For: 30 * time.Minute, Store: "embedded"}, expireSoon, soak},
	{"L12", "a burst: approvals that are all answered within a second", options{Clients: calmClients, Count: 500,
		Store: "embedded"}, nil, burst},
	{"L13", "approvals that expire together", options{For: 4 * time.Minute, Clients: calmClients, Count: 1000,
		Store: "firestore"}, expireTogether, expiry},
	{"L14", "open streams of the AI SDK, likewise", options{For: time.Minute, Clients: 200, Store: "embedded"}, nil,
		streams(uiFace)},
	{"L15", "open streams of AG-UI, likewise", options{For: time.Minute, Clients: 200, Store: "embedded"}, nil,
		streams(aguiFace)},
}

// Proof is the command that scripts/prove runs.
func Proof() proof.Proof {
	var o options
	return proof.Proof{
		Name: "load", Chance: true, Only: "measurements (L1 to L15)", Each: true, List: list, Work: work,
		Tries: "speed and correctness under load: backlogs, races, a slow model, a store that stops, killed workers",
		Takes: "an hour and a quarter; -only L3 -for 10s is one of them, shortened",
		About: `A finding is a target that was missed, or something that is wrong in what the runs left behind. It prints the figures,
and what limited each measurement.`,
		Flags: func(f *flag.FlagSet) {
			f.DurationVar(&o.For, "for", 0, "how long each load lasts; the default is the measurement's")
			f.IntVar(&o.Clients, "clients", 0, "how many work at once; the default is the measurement's")
			f.IntVar(&o.Count, "n", 0, "how many approvals are prepared; the default is the measurement's")
			f.StringVar(&o.Store, "store", "",
				"embedded or firestore (the emulator, with the Pub/Sub emulator); the default is the measurement's")
		},
		Run: func(ctx context.Context, r *proof.Run) error { return execute(ctx, o, r) },
	}
}

func list() (counts []proof.Count, err error) {
	counts = append(counts, proof.Count{N: len(measurements), What: "measurements:"})
	for _, m := range measurements {
		counts = append(counts, proof.Count{N: 1, What: m.name + " " + m.what})
	}
	return counts, nil
}

func execute(ctx context.Context, o options, r *proof.Run) error {
	if o.Store != "" && o.Store != "embedded" && o.Store != "firestore" {
		return fmt.Errorf("%w: -store is embedded or firestore", proof.ErrUsage)
	}
	for _, m := range measurements {
		if !r.Selects(m.name) || ctx.Err() != nil {
			continue
		}
		report, err := m.with(o, r.Seed).measure(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
		report.to(r)
	}
	return nil
}

// with returns the measurement with the options that are set.
func (m measurement) with(o options, seed uint64) measurement {
	own := m.options
	m.options = options{cmp.Or(o.For, own.For), cmp.Or(o.Clients, own.Clients), cmp.Or(o.Count, own.Count),
		cmp.Or(o.Store, own.Store), seed}
	return m
}

// measure prepares the environment, measures, and checks the final state of the runs.
func (m measurement) measure(ctx context.Context) (r *Report, err error) {
	g, err := newEnv(ctx, m)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.close()) }()
	r = newReport(m)
	if err := proof.Attempt(func() { m.run(ctx, g, r) }); err != nil {
		return nil, err
	}
	if err := g.freeze(); err != nil {
		return nil, err
	}
	r.Problems, err = g.check(ctx)
	r.conclude(g)
	return r, err
}
