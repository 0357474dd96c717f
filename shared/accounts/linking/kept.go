package linking

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/countersign-run/countersign/shared/base/wait"
	"github.com/countersign-run/countersign/shared/store"
)

// A refresh token that can be used once is used by one process at a time, which says so in the link before it asks: of
// two that ask at once, one is refused, and could not tell that from a consent that was taken back. Whoever asks stores
// the new tokens before it uses them. A process that ends between the answer and its commit leaves a refresh token that
// was used; whoever comes next is refused, and the user has to link the account again. One that was only stopped there
// stores them when it wakes, and the link is whole again.

const (
	// renewingFor is how long a process may keep others from the refresh token. It is more than a call and the tries to
	// store its answer take.
	renewingFor = callTimeout + (saveTries+1)*saveTimeout
	renewingAsk = 100 * time.Millisecond // after which those who wait look again
)

// renewKept returns the access token that the link has by now, other than the rejected one, or asks the provider for
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
		// Once its claim has ended, another process may have used the refresh token and not stored the next one yet.
		inTime := mine && a.cfg.Now().Before(l.Renewing)
		if inTime && bytes.Equal(now.Refresh, l.Refresh) {
			return "", a.markBroken(ctx, now)
		}
		l = now
	}
}

// kept returns the link's access token, or none if it has ended or was rejected.
func (a *Accounts) kept(ctx context.Context, l link, rejected string) (string, error) {
	ended := !l.AccessUntil.IsZero() && !a.cfg.Now().Before(l.AccessUntil.Add(-renewBefore))
	if l.Access == nil || ended {
		return "", nil
	}
	value, err := a.unseal(ctx, l.Access, a.cfg.accessOf(l.UID))
	if err != nil || value == rejected {
		return "", err
	}
	a.remember(l, value, l.AccessUntil)
	return value, nil
}

// claim reports whether this process alone may use the link's refresh token from now on.
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

// release lets others use the refresh token after a call that failed; if that fails too, they wait for the claim's end.
// It returns the call's error.
func (a *Accounts) release(ctx context.Context, l link, failed error) error {
	if failed != nil {
		l.Renewing = time.Time{}
		_, _ = a.save(ctx, l)
	}
	return failed
}
