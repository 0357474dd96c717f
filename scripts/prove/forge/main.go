// Package forge lets an attacker write into the store whatever they like, and checks that this causes no effect.
//
// The attacker can read and write every document and has no key. Each attack changes the documents of a user whose call
// waits, was rejected, was approved and has not run yet, or was always allowed. The attack happens while the server
// runs, or while it is stopped. Then the server continues. No effect may follow, because no person decided about the
// call that is now stored, and the server must say so: in the audit log, in the action's error, or with a card.
package forge

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/countersign-run/countersign/scripts/prove/proof"
)

// The moments of an attack.
var moments = []string{"while it runs", "while it is stopped"}

// Proof returns the proof.
func Proof() proof.Proof {
	return proof.Proof{
		Name: "forge", Only: "attacks, as NAME MOMENT", List: list, Each: true,
		Tries: "writes into the store by someone without keys: no effect without a person's decision",
		Takes: "half a minute",
		About: `Each attack changes documents of the embedded store. README.md in shared/agent/decision lists, for each document, what
such a change does.`,
		Run: execute,
	}
}

func list() ([]proof.Count, error) {
	return []proof.Count{{N: len(attacks), What: "kinds of writes into the store"},
		{N: len(attacks) * len(moments), What: "attacks, while the server runs and while it is stopped"}}, nil
}

func execute(ctx context.Context, r *proof.Run) (err error) {
	dir, err := os.MkdirTemp("", "forge")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	w, err := open(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	for i, a := range attacks {
		for j, moment := range moments {
			name := a.name + " " + moment
			if ctx.Err() != nil || !r.Selects(name) {
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
