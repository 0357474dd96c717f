package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"

	"github.com/countersign-run/countersign/scripts/prove/gauntlet"
	"github.com/countersign-run/countersign/scripts/prove/proof"
)

// smoke is the quick part of the gauntlet.
func smoke(flags *flag.FlagSet) runFunc {
	token := flags.String("token", "",
		"ID token of a user whose Google account is linked; or GAUNTLET_TOKEN; none for a local server")
	token2 := flags.String("token2", "", "ID token of another one, for the cases between two users; or GAUNTLET_TOKEN2")
	return func(ctx context.Context, o *operator, args []string) error {
		u, err := url.Parse(args[0])
		if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
			return fmt.Errorf("BASE is %q, and must be where the functions answer, such as https://agent.example.com",
				args[0])
		}
		switch gauntlet.Proof().Main(ctx, []string{"-base", args[0], "-quick",
			"-token", cmp.Or(*token, o.getenv("GAUNTLET_TOKEN")),
			"-token2", cmp.Or(*token2, o.getenv("GAUNTLET_TOKEN2"))}, o.out, o.out) {
		case proof.Proven:
			return nil
		case proof.Found:
			return errFailed
		}
		return errors.New("it could not be tried")
	}
}
