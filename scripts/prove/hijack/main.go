package hijack

import (
	"context"
	"errors"
	"flag"
	"os"
	"strings"

	"github.com/countersign-run/countersign/scripts/prove/proof"
)

// Proof is the proof.
func Proof() proof.Proof {
	third := false
	return proof.Proof{
		Name: "hijack", Chance: true, Only: "attacks, as ID in PLACE", List: list,
		Tries: "a model that obeys whoever writes to it, with attacks in every place that it reads",
		Takes: "3 minutes; with -third 1 minute",
		About: `A user rejects most of what comes of it. Nothing may happen that they have not approved, no preview may hide what will
happen, and nothing of another user may be reached. HOSTILE_CASES may name a file of hostile cases, whose injections
are tried too.`,
		Flags: func(f *flag.FlagSet) { f.BoolVar(&third, "third", false, "put each attack in a third of the places") },
		Run:   func(ctx context.Context, r *proof.Run) error { return execute(ctx, r, third) },
	}
}

func list() ([]proof.Count, error) {
	attacks, e1 := Attacks()
	commands, e2 := CommandAttacks()
	plans, e3 := PlanAttacks()
	return []proof.Count{{N: len(attacks), What: "attacks of our own"},
		{N: len(Places), What: "places: " + strings.Join(Places, ", ")},
		{N: len(attacks) * len(Places), What: "attacks in a place, and those of a file of hostile cases"},
		{N: len(commands), What: "attacks that want commands"},
		{N: len(HostPlaces), What: "places of a host: " + strings.Join(HostPlaces, ", ")},
		{N: len(plans), What: "attacks on plans"},
		{N: len(PlanPlaces), What: "places of a plan: " + strings.Join(PlanPlaces, ", ")}}, errors.Join(e1, e2, e3)
}

// run puts attacks where the model reads them and has it obey, while a user rejects most of what comes of it. See hold
// and settle for what must be true.
func execute(ctx context.Context, r *proof.Run, third bool) (err error) {
	attacks, err := Attacks()
	if err != nil {
		return err
	}
	if file := os.Getenv("HOSTILE_CASES"); file != "" {
		hostile, err := Hostile(file)
		if err != nil {
			return err
		}
		attacks = append(attacks, hostile...)
	}
	dir, err := os.MkdirTemp("", "hijack")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s, err := newSiege(ctx, r, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.w.Close()) }()
	err = proof.Attempt(func() {
		s.begin()
		for i, a := range attacks {
			for j, place := range Places {
				if (!third || (i+j)%everyNth == 0) && r.Selects(a.ID+" in "+place) {
					s.attack(a, place)
				}
			}
		}
		s.settle()
	})
	if err != nil && ctx.Err() == nil {
		s.fail("it cannot go on after: %v", err)
	}
	if err := errors.Join(besiegeHost(ctx, r, dir, third), besiegePlans(ctx, r, dir, third)); err != nil {
		return err
	}
	return ctx.Err()
}
