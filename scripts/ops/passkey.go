package main

import (
	"context"
	"errors"
	"flag"
	"fmt"

	"github.com/countersign-run/countersign/shared/accounts/passkeys"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/enrols"
)

// passkeyOf prints a one-time code with which a user may add a passkey, lists a user's passkeys, or removes one.
func passkeyOf(flags *flag.FlagSet) runFunc {
	id := flags.String("id", "", "for remove: the ID of the passkey")
	return func(ctx context.Context, o *operator, args []string) error {
		var keys *passkeys.Passkeys
		part := app.Part{Name: "passkeys", Open: func(ctx context.Context, b *app.Builder) (err error) {
			if b.Env.Strong == nil {
				return errors.New("STRONG_APPROVAL is not set, so no decision needs a passkey")
			}
			keys, err = enrols.Open(ctx, b)
			return err
		}}
		if _, err := o.user(ctx, args[1], part); err != nil {
			return err
		}
		switch uid := args[1]; args[0] {
		case "code":
			text, err := keys.NewCode(ctx, uid)
			if err != nil {
				return err
			}
			return o.printf("%s\nThe user types it in the console, at %s, within an hour. It counts once.", text,
				keys.Link())
		case "list":
			return o.listPasskeys(ctx, keys, uid)
		case "remove":
			if *id == "" {
				return errors.New("passkey remove takes -id ID; passkey list prints the IDs")
			}
			if err := keys.Remove(ctx, uid, *id); err != nil {
				return err
			}
			return o.printf("removed; decisions that it confirmed no longer count, unless their calls have started")
		}
		return fmt.Errorf("passkey takes code, list or remove, not %q", args[0])
	}
}

func (o *operator) listPasskeys(ctx context.Context, keys *passkeys.Passkeys, uid string) error {
	all, err := keys.List(ctx, uid)
	for _, k := range all {
		err = errors.Join(err, o.printf("%s  added %s  %s", k.ID, k.CreatedAt.Format("2006-01-02"), k.Name))
	}
	return errors.Join(err, o.printf("passkeys: %d", len(all)))
}
