// Package forge makes arbitrary changes to the store as an attacker, and checks that they cause no effect.
//
// The attacker can read and write every document and has no key. Each attack changes the documents of a user whose call
// waits, was rejected, was approved and has not run yet, or was always allowed. Some attacks change the place where the
// call acts: the user's linked account, host or terminal. The attack happens while the server runs, or while it is
// stopped. Then the server continues. No effect may follow, because no person decided about the call that is now
// stored. The server must report this in the audit log, in the action's error, or with a card.
package forge

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/testkit/emulators"
)

// moments are the moments of an attack.
var moments = []string{"while it runs", "while it is stopped"}

// options are the flags of the proof.
type options struct {
	store string // embedded or firestore
	every int    // tries every nth attack, at one moment; 0: all attacks, at all moments
}

// Proof returns the command that scripts/prove runs.
func Proof() proof.Proof {
	o := options{store: "embedded"}
	return proof.Proof{
		Name: "forge", Only: "attacks, as NAME MOMENT", List: list, Each: true,
		Tries: "writes into the store by someone without keys: no effect without a person's decision",
		Takes: "half a minute",
		About: `Each attack changes documents of the store. README.md in shared/agent/decision lists, for each document, what
such a change does. With the embedded store, its own key signs; with Firestore, a key of Cloud KMS.`,
		Flags: func(f *flag.FlagSet) {
			f.StringVar(&o.store, "store", o.store, "embedded, or firestore (the emulator)")
		},
		Run: func(ctx context.Context, r *proof.Run) error { return execute(ctx, o, r) },
	}
}

func list() ([]proof.Count, error) {
	return []proof.Count{{N: len(all()), What: "kinds of writes into the store"},
		{N: len(all()) * len(moments), What: "attacks, while the server runs and while it is stopped"}}, nil
}

func execute(ctx context.Context, o options, r *proof.Run) (err error) {
	switch o.store {
	case "embedded":
	case "firestore":
		stop, err := emulators.UseFirestore(ctx)
		if err != nil {
			return err
		}
		defer stop()
	default:
		return fmt.Errorf("%w: -store must be embedded or firestore", proof.ErrUsage)
	}
	dir, err := os.MkdirTemp("", "forge")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	w, err := open(ctx, o.store, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	for i, a := range all() {
		for j, moment := range moments {
			name := a.name + " " + moment
			if o.every > 0 && (i%o.every != 0 || j != i/o.every%len(moments)) || ctx.Err() != nil || !r.Selects(name) {
				continue
			}
			if a.host && w.machine == nil {
				r.Skipped(name, "OpenSSH's server is not installed")
				continue
			}
			s := &scene{world: w, uid: fmt.Sprintf("user%d-%d", i, j), stopped: j == 1}
			noticed := ""
			if err := proof.Attempt(func() { noticed = s.play(a) }); err != nil {
				r.Finding(name, "%v", err)
				continue
			}
			r.Held(name, "%s", noticed)
		}
	}
	return nil
}
