package google

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
	renewBefore = time.Minute // of the expiry
	maxLifetime = time.Hour   // of an access token in memory, whatever its provider says
	maxTokens   = 1000        // in memory
)

// token is an access token and the moment after which it is not used any more.
type token struct {
	value string
	until time.Time
}

// tokens are the access tokens in memory, by user and link.
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
		clear(t.m) // each is fetched again when it is needed
	}
	t.m[key] = put
}

func (t *tokens) drop(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.m, key)
}

// access gives an access token of the link, other than the rejected one, with one call to Google for all who ask for it
// at the same time.
func (a *Accounts) access(ctx context.Context, uid, linkID, rejected string) (string, error) {
	key := tokenKey(uid, linkID)
	if value, ok := a.tokens.get(key, a.cfg.Now()); ok && value != rejected {
		return value, nil
	}
	done := a.flights.DoChan(key, func() (any, error) {
		ctx, cancel := a.calls(ctx)
		defer cancel()
		return a.renew(ctx, uid, linkID)
	})
	select {
	case <-ctx.Done():
		return "", providerDown(ctx.Err())
	case result := <-done:
		if result.Err != nil {
			return "", result.Err
		}
		return result.Val.(string), nil
	}
}

// renew asks Google for an access token. Another instance may have used a rotating refresh token up in the meantime:
// then the document has a newer one.
func (a *Accounts) renew(ctx context.Context, uid, linkID string) (string, error) {
	var before link
	for range 2 {
		l, err := usable(ctx, a.store, uid, nil)
		if err != nil {
			return "", err
		}
		if l.ID != linkID {
			return "", providerDown(errors.New("the account was linked anew meanwhile"))
		}
		if bytes.Equal(l.Refresh, before.Refresh) {
			break
		}
		before = l
		value, err := a.ask(ctx, l)
		if !isInvalidGrant(err) {
			return value, err
		}
	}
	return "", a.markBroken(ctx, before)
}

func (a *Accounts) ask(ctx context.Context, l link) (string, error) {
	refresh, err := a.open(ctx, l)
	if err != nil {
		return "", err
	}
	got, err := a.oauth.TokenSource(ctx, &oauth2.Token{RefreshToken: refresh}).Token()
	if isInvalidGrant(err) {
		return "", err
	}
	if err != nil {
		return "", providerDown(err)
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

// rotate keeps the refresh token that the provider gave in place of the one it was asked with. It insists where the
// document has changed: the new token is all that is left of the consent.
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
		now, loadErr := a.load(ctx, l.UID)
		if loadErr != nil || now.ID != l.ID {
			return providerDown(errors.New("the account was linked anew or unlinked meanwhile"))
		}
		l.version = now.version
	}
	if err != nil {
		return storeDown(err)
	}
	return nil
}

// markBroken writes down, once, that Google refuses the link, so that the next call is refused without asking Google.
func (a *Accounts) markBroken(ctx context.Context, l link) error {
	a.tokens.drop(tokenKey(l.UID, l.ID))
	l.Broken = true
	err := a.save(ctx, l)
	if err == nil || errors.Is(err, store.ErrConflict) { // a conflict: somebody else has marked it, or linked it anew
		return reauth()
	}
	return reauth().Because(errors.New(err.Error()))
}
