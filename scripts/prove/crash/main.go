// Package crash interrupts Countersign at every point where it can die, and checks the state afterwards.
//
// Workers are separate processes with all functions on one address. Gmail, Calendar, GitHub, a container engine, the
// model, and the store's file or emulator outlive them. A first run of each scenario counts the points where a worker
// calls something outside its process: before and after each read, commit, publish, model call and provider call, and
// before each response.
//
// Each trial then takes a new user through one scenario: approve, edit, always allow, reject, cancel, hold, undo,
// expire; or a plan that is confirmed, refined, rejected, cancelled, changed or replaced, and that acts with a grant or
// asks. The trial interrupts one worker at one point, with or without a provider fault at the same time. The client,
// the queue and the sweep then retry as usual. Finally, the trial compares the stored documents with the effects at the
// providers, with the events at a topic that loses, truncates, duplicates and reorders them, and with the e-mails that
// remind a user of waiting approvals.
package crash

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/testkit/emulators"
)

// options are the flags.
type options struct {
	kills   int
	store   string
	workers int
	program string // the workers' program; empty: this one
	anywhen bool
	on      string
	of      []kind          // the kinds of provider in the trials; nil: all
	only    func(plan) bool // which plans can be chosen; nil: any
	counted *counted        // points shared with other runs; nil: this run counts its own
}

// The values of -on: where the effects of the trials take place.
const (
	providers = "providers"
	hosts     = "host"
)

// kinds returns the kinds that the trials use.
func (o options) kinds() []kind {
	switch {
	case o.of != nil:
		return o.of
	case o.on == hosts:
		return commands
	}
	return kinds
}

// Proof returns the command that scripts/prove runs.
func Proof() proof.Proof {
	o := options{kills: 7200, store: "embedded", workers: 8, on: providers}
	return proof.Proof{
		Name: "crash", Chance: true, Only: "scenarios", Work: work, List: list,
		Tries: "kills, pauses or duplicates a worker at each point where it can die",
		Takes: "8 minutes; -kills 240 is a sample of 20 s",
		About: `Each trial interrupts one worker, at a known point or with -anywhen at a random moment.
The client, the queue and the sweep retry as usual. The trial then compares the stored documents with the effects at the
providers.`,
		Flags: func(f *flag.FlagSet) {
			f.IntVar(&o.kills, "kills", o.kills, "how many workers to interrupt")
			f.StringVar(&o.store, "store", o.store, "embedded, or firestore (the emulator)")
			f.IntVar(&o.workers, "workers", o.workers, "how many trials run at a time")
			f.StringVar(&o.on, "on", o.on, "providers, or host (commands on OpenSSH's server)")
			f.BoolVar(&o.anywhen, "anywhen", o.anywhen, "kill at random moments instead of known points")
		},
		Run: func(ctx context.Context, r *proof.Run) error { return execute(ctx, o, r) },
	}
}

func list() ([]proof.Count, error) {
	var named, ofKind, how, ofFaults, onHosts, ofHosts, ways []string
	pairs := 0
	for _, w := range scenarios {
		named = append(named, w.name)
		for _, k := range everyKind {
			if w.fits(k) {
				pairs++
			}
		}
	}
	for _, k := range kinds {
		ofKind = append(ofKind, k.name)
	}
	for _, k := range commands {
		onHosts = append(onHosts, k.name)
	}
	for _, f := range hostFaults {
		ofHosts = append(ofHosts, string(f))
	}
	for _, v := range commands[0].variants() {
		how = append(how, string(v))
	}
	for _, f := range faults {
		ofFaults = append(ofFaults, string(f))
	}
	for _, how := range publishOutcomes {
		if !slices.Contains(ways, string(how)) {
			ways = append(ways, string(how))
		}
	}
	all := func(names []string) string { return strings.Join(names, "; ") }
	return []proof.Count{
		{N: len(scenarios), What: "scenarios: " + all(named)},
		{N: len(kinds), What: "kinds of provider: " + all(ofKind)},
		{N: len(commands), What: "kinds of command on OpenSSH's server, with -on host: " + all(onHosts)},
		{N: pairs, What: "pairs of a scenario and a fitting kind; a run without interruption " +
			"counts the points of each"},
		{N: len(how), What: "ways to interrupt at each point, the last of them with -on host: " + all(how)},
		{N: len(faults), What: "faults of the provider at the same time, in about three quarters of the trials: " +
			all(ofFaults)},
		{N: len(hostFaults), What: "faults of the host instead of those, at the moment of the interruption: " +
			all(ofHosts)},
		{N: len(ways), What: "ways in which the topic handles a publish, one after the other: " + all(ways)},
		{N: 7200, What: "trials, unless -kills says otherwise"},
	}, nil
}

func execute(ctx context.Context, o options, r *proof.Run) (err error) {
	if o.kills < 1 || o.workers < 1 || o.store != "embedded" && o.store != "firestore" ||
		o.on != providers && o.on != hosts {
		return fmt.Errorf("%w: -kills and -workers must be at least 1, -store must be embedded or firestore, and -on "+
			"providers or host", proof.ErrUsage)
	}
	dir, err := os.MkdirTemp("", "crash")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if o.store == "firestore" {
		stop, err := emulators.UseFirestore(ctx)
		if err != nil {
			return err
		}
		defer stop()
	}
	return try(ctx, o, r, dir)
}
