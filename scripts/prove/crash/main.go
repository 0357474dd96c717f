// Package crash kills Countersign at every point at which it can die, and checks what is left.
//
// Workers are processes of their own, with all functions on one address; Gmail, Calendar, GitHub, an engine of
// containers, the model and the store's file or emulator outlive them. A first walk of each kind counts the points at
// which a worker calls something outside itself: before and after each read, commit, publish, model call and provider
// call, and before each answer. Then each trial takes a fresh user through a walk (approve, edit, always allow, reject,
// cancel, hold, undo, expire; a plan that is confirmed, refined, rejected, cancelled, changed or replaced, and acts by
// a grant or asks), strikes one worker at one point, with or without a fault of the provider at the same time, and lets
// the client, the queue and the sweep retry as usual. It then compares the documents with the requests that the
// providers received, with the notifications that arrived through a topic that loses, cuts, doubles and reorders
// messages, and with the reminder mails.
package crash

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
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
	program string // of the workers; empty: this one
	anywhen bool
	on      string
	of      []kind          // the kinds of provider; nil: all
	only    func(plan) bool // which plans may be chosen; nil: any
	counted *counted        // what another run has counted, or counts for others; nil: it counts for itself
}

// What the trials' effects take place on.
const (
	providers = "providers"
	hosts     = "host"
)

// kinds are those that the trials are about.
func (o options) kinds() []kind {
	switch {
	case o.on == hosts:
		return commands
	case o.of != nil:
		return o.of
	}
	return kinds
}

// Proof is the proof.
func Proof() proof.Proof {
	o := options{kills: 7200, store: "embedded", workers: 8, on: providers}
	return proof.Proof{
		Name: "crash", Chance: true, Only: "walks", Work: work, List: list,
		Tries: "a worker killed, stopped or doubled at each point at which it can die",
		Takes: "8 minutes; with -kills 240 it is a sample of 20 s",
		About: `It strikes one worker in each trial, at a known point or with -anywhen at any moment, lets the client, the queue and
the sweep retry as they would, and compares the stored documents with what the providers received.`,
		Flags: func(f *flag.FlagSet) {
			f.IntVar(&o.kills, "kills", o.kills, "how many workers to strike")
			f.StringVar(&o.store, "store", o.store, "embedded, or firestore for the emulator")
			f.IntVar(&o.workers, "workers", o.workers, "how many trials at a time")
			f.StringVar(&o.on, "on", o.on, "providers, or host: commands on OpenSSH's server")
			f.BoolVar(&o.anywhen, "anywhen", o.anywhen, "kill at random moments instead of at the known points")
		},
		Run: func(ctx context.Context, r *proof.Run) error { return execute(ctx, o, r) },
	}
}

func list() ([]proof.Count, error) {
	var named, ofKind, how, torn, onHosts, ofHosts, ways []string
	pairs := 0
	for _, w := range walks {
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
		torn = append(torn, string(f))
	}
	for _, how := range takings {
		if !slices.Contains(ways, string(how)) {
			ways = append(ways, string(how))
		}
	}
	all := func(names []string) string { return strings.Join(names, "; ") }
	return []proof.Count{
		{N: len(walks), What: "walks: " + all(named)},
		{N: len(kinds), What: "kinds of provider: " + all(ofKind)},
		{N: len(commands), What: "kinds of command on OpenSSH's server, with -on host: " + all(onHosts)},
		{N: pairs, What: "walks with a kind that fits, each of whose points is counted by a walk without a blow"},
		{N: len(how), What: "ways to strike at each point, the last of them with -on host: " + all(how)},
		{N: len(faults), What: "faults of the provider beside the blow, in some three quarters of the trials: " +
			all(torn)},
		{N: len(hostFaults), What: "faults of the host at the moment of the blow, in place of those: " + all(ofHosts)},
		{N: len(ways), What: "ways in which the topic takes what others are told, one after the other: " + all(ways)},
		{N: 7200, What: "trials, unless -kills says otherwise"},
	}, nil
}

func execute(ctx context.Context, o options, r *proof.Run) (err error) {
	if o.kills < 1 || o.workers < 1 || o.store != "embedded" && o.store != "firestore" ||
		o.on != providers && o.on != hosts {
		return fmt.Errorf("%w: -kills and -workers must be at least 1, -store embedded or firestore, and -on "+
			"providers or host", proof.ErrUsage)
	}
	dir, err := os.MkdirTemp("", "crash")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if o.store == "firestore" {
		e, err := emulators.StartFirestore(ctx, io.Discard)
		if err != nil {
			return err
		}
		defer func() { _ = e.Stop() }() // it ends with this process in any case
		if err := os.Setenv("FIRESTORE_EMULATOR_HOST", e.Addr); err != nil {
			return err
		}
	}
	return try(ctx, o, r, dir)
}
