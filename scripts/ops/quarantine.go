package main

import (
	"context"
	"flag"
)

// quarantine makes every open run ask its user before the next effect. The embedded store does this itself when it
// detects that it is an older copy. After any other restore, the operator must run this command.
func quarantine(*flag.FlagSet) runFunc {
	return func(ctx context.Context, o *operator, _ []string) error {
		a, err := o.app(ctx)
		if err != nil {
			return err
		}
		marked, left, err := a.API.Loop.Quarantine(ctx)
		if err != nil {
			return err
		}
		if left > 0 {
			if err := o.printf("%d runs cannot be read; they stay inactive until they can be", left); err != nil {
				return err
			}
		}
		return o.printf("%d runs will ask their users before the next effect", marked)
	}
}
