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

// smoke runs the short version of the gauntlet.
func smoke(flags *flag.FlagSet) runFunc {
	token := flags.String("token", "",
		"ID token of a user with a linked Google account (default: GAUNTLET_TOKEN); a local server needs none")
	token2 := flags.String("token2", "", "ID token of a second user, for more cases (default: GAUNTLET_TOKEN2)")
	return func(ctx context.Context, o *operator, args []string) error {
		base, err := baseURL(args[0])
		if err != nil {
			return err
		}
		switch gauntlet.Proof().Main(ctx, []string{"-base", base, "-quick",
			"-token", cmp.Or(*token, o.getenv("GAUNTLET_TOKEN")),
			"-token2", cmp.Or(*token2, o.getenv("GAUNTLET_TOKEN2"))}, o.out, o.out) {
		case proof.Proven:
			return nil
		case proof.Found:
			return errFailed
		}
		return errors.New("the deployment could not be tested")
	}
}

// baseURL checks the URL of a deployment.
func baseURL(given string) (string, error) {
	u, err := url.Parse(given)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return "", fmt.Errorf("BASE is %q; it must be the functions' base URL, such as https://agent.example.com",
			given)
	}
	return given, nil
}
