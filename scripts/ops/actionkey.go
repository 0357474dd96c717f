package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"

	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/tools/action"
)

// actionKey prints the key of one endpoint, for the operator: with it the endpoint verifies the caller's identity,
// and cannot sign for another endpoint. Nothing else is printed, so that it can be piped into a secret.
func actionKey(*flag.FlagSet) runFunc {
	return func(_ context.Context, o *operator, args []string) error {
		cfg, err := config.Load(o.getenv)
		switch {
		case err != nil:
			return err
		case cfg.Actions == "":
			return errors.New("ACTIONS is not set: the folder of the declared actions is needed")
		case !cfg.ActionKey.IsSet():
			return errors.New("ACTION_KEY is not set: the key of an endpoint is derived from its first one")
		}
		list, err := action.Load(cfg.Actions)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(list, func(a action.Action) bool { return a.Name == args[0] })
		if at < 0 {
			return fmt.Errorf("no plugin.yaml in ACTIONS lists the action %q", args[0])
		}
		key, err := action.DeriveKey(cfg.ActionKeys()[0], list[at])
		if err != nil {
			return err
		}
		return o.printf("%s", key)
	}
}
