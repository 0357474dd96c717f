package linking

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/countersign-run/countersign/shared/base/wait"
	"github.com/countersign-run/countersign/shared/store"
)

// Only one process at a time uses a single-use refresh token. It claims the link before it asks the provider: if two
// processes asked at once, the provider would refuse one, which looks like a revoked consent. The process stores the
// new tokens before it uses them. If it dies between the answer and its commit, the stored refresh token is already
// used: the next process is refused, and the user has to link the account again. A process that was only paused stores
// the tokens when it resumes, which repairs the link.

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
