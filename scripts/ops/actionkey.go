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

// actionKey prints the key of one endpoint. The endpoint verifies its caller with this key, and cannot use it to sign
// for another endpoint. actionKey prints nothing else, so you can pipe the output into a secret.
func actionKey(*flag.FlagSet) runFunc {
	return func(_ context.Context, o *operator, args []string) error {
		cfg, err := config.Load(o.getenv)
		switch {
		case err != nil:
			return err
		case cfg.Actions == "":
			return errors.New("ACTIONS is not set: set it to the folder with the declared actions")
		case !cfg.ActionKey.IsSet():
			return errors.New("ACTION_KEY is not set: its first key is required to derive the key of an endpoint")
		}
		list, err := action.Load(cfg.Actions)
		if err != nil {
			return err
		}
		at := slices.IndexFunc(list, func(a action.Action) bool { return a.Name == args[0] })
		if at < 0 {
			return fmt.Errorf("no plugin.yaml under ACTIONS lists the action %q", args[0])
		}
		key, err := action.DeriveKey(cfg.ActionKeys()[0], list[at])
		if err != nil {
			return err
		}
		return o.printf("%s", key)
	}
}
