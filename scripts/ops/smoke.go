package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"net/url"

	"github.com/countersign-run/countersign/scripts/prove/gauntlet/trial"
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
		err = trial.Tour(ctx, args[0], cmp.Or(*token, o.getenv("GAUNTLET_TOKEN")),
			cmp.Or(*token2, o.getenv("GAUNTLET_TOKEN2")), trial.Quick(), o.out)
		if errors.Is(err, trial.ErrFailed) {
			return errFailed
		}
		return err
	}
}
