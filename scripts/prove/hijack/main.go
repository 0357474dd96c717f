package hijack

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"

	"github.com/countersign-run/countersign/scripts/prove/proof"
)

// Proof is the command that scripts/prove runs.
func Proof() proof.Proof {
	every := 1
	return proof.Proof{
		Name: "hijack", Chance: true, Only: "attacks, as ID in PLACE", List: list,
		Tries: "a model that obeys every text, with attacks in every place that it reads",
		Takes: "3 minutes; with -every 3 one",
		About: `A user rejects most of what comes of it. Nothing may happen that they have not approved, no preview may hide what will
happen, and nothing of another user may be reached. HOSTILE_CASES may name a file of hostile cases, whose injections
are tried too.`,
		Flags: func(f *flag.FlagSet) { f.IntVar(&every, "every", every, "put each attack in one place out of `N`") },
		Run:   func(ctx context.Context, r *proof.Run) error { return execute(ctx, r, every) },
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
		{N: len(ListWays), What: "ways with a list of commands: " + strings.Join(ListWays, "; ")},
		{N: len(plans), What: "attacks on plans"},
		{N: len(PlanPlaces), What: "places of a plan: " + strings.Join(PlanPlaces, ", ")}}, errors.Join(e1, e2, e3)
}

// execute puts attacks where the model reads them. The model obeys them, and a user rejects most of its requests. See
// hold and settle for the checks.
func execute(ctx context.Context, r *proof.Run, every int) (err error) {
	if every < 1 {
		return fmt.Errorf("%w: -every must be at least 1", proof.ErrUsage)
	}
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
	s.try(func() {
		s.begin()
		s.each(attacks, Places, every, s.attack)
		s.checkFinalState()
	})
	if err := errors.Join(besiegeHost(ctx, r, dir, every), besiegeLists(ctx, r, dir, every),
		besiegePlans(ctx, r, dir, every)); err != nil {
		return err
	}
	return ctx.Err()
}
