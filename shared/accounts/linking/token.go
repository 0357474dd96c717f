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
	renewBefore = time.Minute // a token is renewed this long before its expiry
	maxLifetime = time.Hour   // longest use of an access token in memory, whatever the provider says
	maxTokens   = 1000        // maximum number in memory
	maxSeconds  = 366 * 86400 // seconds; a longer lifetime that a provider states is cut to this
	saveTries   = 5           // attempts to store the tokens that replace used ones
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

// tokenKey returns the key of the link's access token in memory. It includes the account, so that a changed document
// does not find the token of the genuine one.
func (l link) tokenKey() string { return l.UID + "\x00" + l.ID + "\x00" + l.identity() }

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

// access returns an access token of the link other than the rejected one. All concurrent callers share one call to the
// provider. A token belongs to one consent, so after an account is unlinked or linked again, callers that read the new
// link do not find the old token. justRead means that the caller has just read the link; otherwise access reads it
// again before it asks the provider.
func (a *Accounts) access(ctx context.Context, l link, rejected string, justRead bool) (string, error) {
	key := l.tokenKey()
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
		if a.cfg.Keeps {
			return a.renewKept(ctx, l, rejected)
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

// renew requests an access token from the provider, with the link as it was read. If another instance has used a
// rotating refresh token in the meantime, the document has a newer one.
func (a *Accounts) renew(ctx context.Context, l link) (string, error) {
	for {
		value, err := a.ask(ctx, l)
		if !a.refused(err) {
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

// current returns the link that is now stored. It returns an error if the account was linked again.
func (a *Accounts) current(ctx context.Context, l link) (link, error) {
	now, err := a.cfg.load(ctx, a.store, l.UID)
	if err == nil {
		err = now.usable(nil)
	}
	if err == nil && now.ID != l.ID {
		err = a.cfg.providerDown(errors.New("the account was linked again in the meantime"))
	}
	return now, err
}

// ask requests an access token. A refresh token is valid only for the client that it was issued to. The link stays as
// it is, because the operator may deploy the earlier client again.
func (a *Accounts) ask(ctx context.Context, l link) (string, error) {
	if l.Client != "" && l.Client != a.cfg.ClientID {
		return "", a.cfg.reauth().Because(errors.New("the account was linked for another OAuth client"))
	}
	refresh, err := a.refreshIn(ctx, l)
	if err != nil {
		return "", err
	}
	got, err := a.oauth.TokenSource(ctx, &oauth2.Token{RefreshToken: refresh}).Token()
	if a.refused(err) {
		return "", err
	}
	if err != nil {
		return "", a.cfg.providerDown(err)
	}
	if a.cfg.Keeps || got.RefreshToken != refresh {
		if err := a.rotate(ctx, l, got); err != nil {
			return "", err
		}
	}
	a.remember(l, got.AccessToken, ends(got, a.cfg.Now()))
	return got.AccessToken, nil
}

// remember keeps an access token in memory until a minute before it expires, and for at most an hour. A token without
// an expiry is kept if its provider gives tokens that never expire.
func (a *Accounts) remember(l link, value string, until time.Time) {
	now := a.cfg.Now()
	if most := now.Add(maxLifetime); until.After(most) || until.IsZero() && a.cfg.Keeps {
		until = most
	}
	a.tokens.put(l.tokenKey(), token{value, until.Add(-renewBefore)}, now)
}

// ends returns when an access token that was received now expires. Zero means never, or that the provider does not say.
func ends(got *oauth2.Token, now time.Time) time.Time {
	seconds := got.ExpiresIn
	if seconds == 0 { // only an answer in URL-encoded form has it there
		seconds, _ = got.Extra("expires_in").(int64)
	}
	if seconds <= 0 {
		return time.Time{}
	}
	return now.Add(time.Duration(min(seconds, maxSeconds)) * time.Second)
}

// rotate stores the tokens that the provider returned in place of the used ones. Only the new ones are still valid, so
// it tries again if the document has changed or the store fails, each time with a time limit of its own. A process that
// was paused here stores them when it continues, even if another process has marked the link broken.
func (a *Accounts) rotate(ctx context.Context, l link, got *oauth2.Token) error {
	ctx = context.WithoutCancel(ctx)
	l.Renewing = time.Time{}
	pause := 50 * time.Millisecond
	for try := 1; ; try++ {
		again, err := a.saveTokens(ctx, &l, got)
		if !again || try == saveTries {
			return err
		}
		time.Sleep(pause)
		pause *= 2
	}
}

// saveTokens tries once to store the tokens. It reports whether another attempt makes sense, and updates l to the
// stored link.
func (a *Accounts) saveTokens(ctx context.Context, l *link, got *oauth2.Token) (again bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	if err := a.seal(ctx, l, got); err != nil {
		return true, err
	}
	if _, err = a.save(ctx, *l); err == nil {
		return false, nil
	}
	now, unread := a.cfg.load(ctx, a.store, l.UID)
	if unread == nil && now.ID != l.ID {
		return false, a.cfg.providerDown(errors.New("the account was linked again or unlinked in the meantime"))
	}
	if unread == nil {
		l.version, l.stored = now.version, now.stored
	}
	return true, storeDown(err)
}

// markBroken records, once, that the provider refuses the link. Later calls then fail without asking the provider.
func (a *Accounts) markBroken(ctx context.Context, l link) error {
	a.tokens.drop(l.tokenKey())
	l.Broken = true
	_, err := a.save(ctx, l)
	// After a conflict, another process has marked it, or the user has linked again.
	if err == nil || errors.Is(err, store.ErrConflict) {
		return a.cfg.reauth()
	}
	return a.cfg.reauth().Because(errors.New(err.Error()))
}
