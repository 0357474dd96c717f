package linking

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"golang.org/x/oauth2"

	"github.com/countersign-run/countersign/shared/store"
)

const (
	renewBefore = time.Minute // before its expiry
	maxLifetime = time.Hour   // of an access token in memory, whatever its provider says
	maxTokens   = 1000        // in memory
)

// token is an access token and the time until which it is used.
type token struct {
	value string
	until time.Time
}

// tokens holds the access tokens in memory, by user and link.
type tokens struct {
	mu sync.Mutex
	m  map[string]token
}

func tokenKey(uid, linkID string) string { return uid + "\x00" + linkID }

func (t *tokens) get(key string, now time.Time) (string, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	found, ok := t.m[key]
	return found.value, ok && now.Before(found.until)
}

func (t *tokens) put(key string, put token, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.m) >= maxTokens {
		maps.DeleteFunc(t.m, func(_ string, old token) bool { return !now.Before(old.until) })
	}
	if len(t.m) >= maxTokens {
		clear(t.m) // each is requested again when needed
	}
	t.m[key] = put
}

func (t *tokens) drop(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.m, key)
}

// access returns an access token of the link other than the rejected one, with one call to the provider for all
// concurrent callers. A token belongs to one consent, so that of an account that was unlinked or linked anew is not
// found by who has read the link since. justRead says that the caller has: otherwise it is read again before the
// provider is asked.
func (a *Accounts) access(ctx context.Context, l link, rejected string, justRead bool) (string, error) {
	key := tokenKey(l.UID, l.ID)
	if value, ok := a.tokens.get(key, a.cfg.Now()); ok && value != rejected {
		return value, nil
	}
	done := a.flights.DoChan(key, func() (any, error) {
		ctx, cancel := a.calls(ctx)
		defer cancel()
		if !justRead {
			now, err := a.current(ctx, l)
			if err != nil {
				return "", err
			}
			l = now
		}
		return a.renew(ctx, l)
	})
	select {
	case <-ctx.Done():
		return "", a.cfg.providerDown(ctx.Err())
	case result := <-done:
		if result.Err != nil {
			return "", result.Err
		}
		return result.Val.(string), nil
	}
}

// renew requests an access token from the provider, with the link as it was read. Another instance may have used a
// rotating refresh token in the meantime: then the document has a newer one.
func (a *Accounts) renew(ctx context.Context, l link) (string, error) {
	for {
		value, err := a.ask(ctx, l)
		if !isInvalidGrant(err) {
			return value, err
		}
		now, err := a.current(ctx, l)
		if err != nil {
			return "", err
		}
		if bytes.Equal(now.Refresh, l.Refresh) {
			return "", a.markBroken(ctx, l)
		}
		l = now
	}
}

// current returns the link as the store has it now. It is an error if the account was linked anew.
func (a *Accounts) current(ctx context.Context, l link) (link, error) {
	now, err := a.cfg.load(ctx, a.store, l.UID)
	if err == nil {
		err = now.usable(nil)
	}
	if err == nil && now.ID != l.ID {
		err = a.cfg.providerDown(errors.New("the account was linked anew meanwhile"))
	}
	return now, err
}

func (a *Accounts) ask(ctx context.Context, l link) (string, error) {
	refresh, err := a.unseal(ctx, l)
	if err != nil {
		return "", err
	}
	got, err := a.oauth.TokenSource(ctx, &oauth2.Token{RefreshToken: refresh}).Token()
	if isInvalidGrant(err) {
		return "", err
	}
	if err != nil {
		return "", a.cfg.providerDown(err)
	}
	if got.RefreshToken != refresh {
		if err := a.rotate(ctx, l, got.RefreshToken); err != nil {
			return "", err
		}
	}
	lifetime := min(time.Duration(got.ExpiresIn)*time.Second, maxLifetime) - renewBefore
	now := a.cfg.Now()
	a.tokens.put(tokenKey(l.UID, l.ID), token{got.AccessToken, now.Add(lifetime)}, now)
	return got.AccessToken, nil
}

// rotate stores the refresh token that the provider returned in place of the one that was used. If the document has
// changed it tries again, because only the new token is still valid.
func (a *Accounts) rotate(ctx context.Context, l link, refresh string) error {
	sealed, err := a.seal(ctx, l.UID, refresh)
	if err != nil {
		return err
	}
	l.Refresh = sealed
	for range 3 {
		if err = a.save(ctx, l); !errors.Is(err, store.ErrConflict) {
			break
		}
		now, loadErr := a.cfg.load(ctx, a.store, l.UID)
		if loadErr != nil || now.ID != l.ID {
			return a.cfg.providerDown(errors.New("the account was linked anew or unlinked meanwhile"))
		}
		l.version = now.version
	}
	if err != nil {
		return storeDown(err)
	}
	return nil
}

// markBroken records, once, that the provider refuses the link, so that the next call fails without asking it.
func (a *Accounts) markBroken(ctx context.Context, l link) error {
	a.tokens.drop(tokenKey(l.UID, l.ID))
	l.Broken = true
	err := a.save(ctx, l)
	// After a conflict, another process has marked it, or the user has linked again.
	if err == nil || errors.Is(err, store.ErrConflict) {
		return a.cfg.reauth()
	}
	return a.cfg.reauth().Because(errors.New(err.Error()))
}
