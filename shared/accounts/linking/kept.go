package linking

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/countersign-run/countersign/shared/base/wait"
	"github.com/countersign-run/countersign/shared/store"
)

// A refresh token that works only once must be used by one process at a time. Before a process asks the provider, it
// claims the token in the link's document. If two processes asked at once, one of them would be refused, and could not
// distinguish that from a revoked consent.
//
// A process stores the new tokens before it uses them. If it ends between the provider's answer and its commit, the
// stored refresh token is already used: the next process is refused, and the user has to link the account again. If the
// process was only paused there, it stores the new tokens when it continues, and the link works again.

const (
	// renewingFor is how long a process's claim to the refresh token lasts. It is longer than one call to the provider
	// and all attempts to store the answer.
	renewingFor = callTimeout + (saveTries+1)*saveTimeout
	renewingAsk = 100 * time.Millisecond // interval at which waiting processes look again
)

// renewKept returns the link's current access token if it is not the rejected one, and otherwise asks the provider for
// the next one.
func (a *Accounts) renewKept(ctx context.Context, l link, rejected string) (string, error) {
	for {
		value, err := a.kept(ctx, l, rejected)
		if value != "" || err != nil {
			return value, err
		}
		if l.Refresh == nil {
			return "", a.markBroken(ctx, l)
		}
		mine, err := a.claim(ctx, &l)
		if err != nil {
			return "", err
		}
		if !mine {
			if err := wait.For(ctx, renewingAsk); err != nil {
				return "", a.cfg.providerDown(err)
			}
		} else if value, err = a.ask(ctx, l); !a.refused(err) {
			return value, a.release(ctx, l, err)
		}
		now, err := a.current(ctx, l)
		if err != nil {
			return "", err
		}
		// After its claim has ended, another process may have used the refresh token and not yet stored the next one.
		inTime := mine && a.cfg.Now().Before(l.Renewing)
		if inTime && bytes.Equal(now.Refresh, l.Refresh) {
			return "", a.markBroken(ctx, now)
		}
		l = now
	}
}

// kept returns the link's access token, or "" if it has expired or was rejected.
func (a *Accounts) kept(ctx context.Context, l link, rejected string) (string, error) {
	ended := !l.AccessUntil.IsZero() && !a.cfg.Now().Before(l.AccessUntil.Add(-renewBefore))
	if l.Access == nil || ended {
		return "", nil
	}
	value, err := a.unseal(ctx, l.Access, l.accessOf())
	if err != nil || value == rejected {
		return "", err
	}
	a.remember(l, value, l.AccessUntil)
	return value, nil
}

// claim claims the link's refresh token for this process, and reports whether it succeeded.
func (a *Accounts) claim(ctx context.Context, l *link) (bool, error) {
	now := a.cfg.Now()
	if now.Before(l.Renewing) {
		return false, nil
	}
	claimed := *l
	claimed.Renewing = now.Add(renewingFor).UTC()
	version, err := a.save(ctx, claimed)
	if errors.Is(err, store.ErrConflict) {
		return false, nil
	}
	if err != nil {
		return false, storeDown(err)
	}
	claimed.version = version
	*l = claimed
	return true, nil
}

// release ends the claim after a failed call. If that fails too, other processes wait until the claim expires. It
// returns the call's error.
func (a *Accounts) release(ctx context.Context, l link, failed error) error {
	if failed != nil {
		l.Renewing = time.Time{}
		_, _ = a.save(ctx, l)
	}
	return failed
}
