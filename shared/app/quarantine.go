package app

import (
	"context"
	"fmt"
	"time"

	"github.com/countersign-run/countersign/shared/engine/unit"
	"github.com/countersign-run/countersign/shared/store"
)

// quarantine marks the runs of a store that was found to be an older copy of itself, before any of them advances. Only
// the embedded store can detect that; for another store, the operator runs ops restore.
func quarantine(ctx context.Context, st store.Store, env *unit.Env) error {
	s, ok := st.(interface {
		PutBack() (since time.Time, found bool, err error)
		Kept() error
	})
	if !ok {
		return nil
	}
	since, found, err := s.PutBack()
	if !found || err != nil {
		return err
	}
	r, err := env.Quarantine(ctx, since)
	if err != nil {
		return fmt.Errorf("the store was restored from an older copy, and its runs cannot be quarantined: %w", err)
	}
	env.Log.WarnContext(ctx, "the store was restored from an older copy: effects of its open runs ask their "+
		"users again, and nothing is permitted in advance", "counter", "store_put_back", "since", since,
		"runs", r.Runs, "unreadable", r.Unreadable, "alwaysAllowed", r.Allowed, "tokens", r.Tokens, "hosts", r.Hosts,
		"users", r.Users)
	return s.Kept()
}
