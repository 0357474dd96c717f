package main

import (
	"context"
	"flag"
)

// quarantine has every run that has not ended ask its user before its next effect. The embedded store does so by itself
// where it finds that it is an older copy; after any other restore the operator says it.
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
			if err := o.printf("%d runs cannot be read; they do nothing until they can be", left); err != nil {
				return err
			}
		}
		return o.printf("%d runs ask their users before the next effect", marked)
	}
}
