package linking

import (
	"context"
	"crypto/sha256"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/audit"
)

const (
	consentTTL  = 10 * time.Minute
	maxReturnTo = 512     // bytes
	maxCode     = 2 << 10 // bytes of an authorization code
)

// Consent is the start of an OAuth consent, for the user's browser.
type Consent struct {
	URL     string // the provider's page, where the user consents
	Browser string // value of a cookie (HttpOnly, SameSite=Lax, 10 minutes), which returns it to Callback
}

func digest(s string) []byte {
	sum := sha256.Sum256([]byte(s))
	return sum[:]
}

// Start begins a consent for the scopes (none means all that the tools need), which Callback has to finish within ten
// minutes. Scopes granted before stay granted. returnTo is a path on the server's own origin, "/" if empty. Errors are
// ValidationErrors for scopes and returnTo, and ToolExecutionErrors.
func (a *Accounts) Start(ctx context.Context, uid string, scopes []string, returnTo string) (Consent, error) {
	if len(scopes) == 0 {
		scopes = a.cfg.Scopes
	}
	for _, s := range scopes {
		if !slices.Contains(a.cfg.Scopes, s) {
			return Consent{}, fault.Invalid("scopes", "unknown scope; expected some of %s",
				strings.Join(a.cfg.Scopes, " "))
		}
	}
	if returnTo == "" {
		returnTo = "/"
	}
	if !ownPath(returnTo) {
		return Consent{}, fault.Invalid("returnTo",
			"must be a path on this service, such as /settings, of at most %d bytes", maxReturnTo)
	}
	before, err := a.cfg.load(ctx, a.store, uid)
	if err != nil {
		return Consent{}, err
	}
	verifier, e1 := secret(a.cfg.Rand)
	browser, e2 := secret(a.cfg.Rand)
	if err := errors.Join(e1, e2); err != nil {
		return Consent{}, err
	}
	p := pending{Provider: a.pendingAt(), UID: uid, Browser: digest(browser), Scopes: scopes, ReturnTo: returnTo,
		ExpiresAt: a.cfg.Now().Add(consentTTL)}
	state, err := a.keep(ctx, p, verifier)
	if err != nil {
		return Consent{}, err
	}
	return Consent{URL: a.consentURL(state, verifier, scopes, before.Identity), Browser: browser}, nil
}

func (a *Accounts) consentURL(state, verifier string, scopes []string, before Identity) string {
	options := []oauth2.AuthCodeOption{oauth2.S256ChallengeOption(verifier)}
	for name, value := range a.cfg.Ask(before) {
		options = append(options, oauth2.SetAuthURLParam(name, value))
	}
	oauth := a.oauth
	oauth.Scopes = append(slices.Clone(a.cfg.IdentityScopes), scopes...)
	return oauth.AuthCodeURL(state, options...)
}

// ownPath reports whether a browser that is redirected to the path stays on the server's own origin.
func ownPath(path string) bool {
	u, err := url.Parse(path)
	odd := func(r rune) bool { return r <= ' ' || r == '\\' || r >= 0x7f }
	return err == nil && len(path) <= maxReturnTo && strings.HasPrefix(path, "/") && !strings.HasPrefix(path, "//") &&
		u.Scheme == "" && u.Host == "" && !strings.ContainsFunc(path, odd)
}

// Answer holds the parameters of the provider's redirect to the callback, and the browser's cookie.
type Answer struct {
	State string
	Code  string
	Error string // the provider's error parameter, if the user declined

	// Browser is Consent.Browser. It must be the browser in which the consent was started: otherwise a user could send
	// their consent address to another person, and have that person's account linked to their own (RFC 9700 §4.7).
	Browser string
}

// Callback finishes a consent, once. The callback carries no bearer token: the state identifies the user, and the
// browser's cookie proves that it is the same person. If the state is valid, uid and returnTo are returned also with an
// error, so that the user can be redirected:
//
//   - ValidationError state or code: unknown, used, expired, started in another browser, or without a browser; the user
//     has to start again
//   - AuthError forbidden: the user declined
//   - AuthError scope_missing: linked, but the user did not grant all scopes
//   - ToolExecutionError: the provider or the store failed
func (a *Accounts) Callback(ctx context.Context, ans Answer) (uid, returnTo string, err error) {
	p, err := a.takeConsent(ctx, ans)
	if err != nil {
		return "", "", err
	}
	if ans.Error != "" {
		return p.UID, p.ReturnTo,
			fault.New(fault.Auth, fault.CodeForbidden, "Access to the %s account was not granted.", a.cfg.Name)
	}
	return p.UID, p.ReturnTo, a.finish(ctx, p, ans)
}

// finish exchanges the code for tokens and stores the link.
func (a *Accounts) finish(ctx context.Context, p pending, ans Answer) error {
	refused := fault.Invalid("code", "%s no longer accepts this code; please link the account again",
		a.cfg.Name)
	if ans.Code == "" || len(ans.Code) > maxCode {
		return refused
	}
	ctx, cancel := a.calls(ctx)
	defer cancel()
	verifier, err := a.cipher.DecryptWithContext(ctx, p.Verifier, a.cfg.verifierOf(p.UID, ans.State))
	if err != nil {
		return a.cfg.unreadable(err)
	}
	got, err := a.oauth.Exchange(ctx, ans.Code, oauth2.VerifierOption(string(verifier)))
	if a.refused(err) {
		return refused
	}
	if err != nil {
		return a.cfg.providerDown(err)
	}
	if got.RefreshToken == "" && !a.cfg.Keeps {
		return fault.New(fault.Tool, "no_lasting_access",
			"%s granted no lasting access. Remove this service at %s and link the account again.", a.cfg.Name,
			a.cfg.Settings)
	}
	l := link{provider: a.cfg.Provider, Client: a.cfg.ClientID, UID: p.UID, Scopes: p.Scopes,
		LinkedAt: a.cfg.Now().UTC()}
	if l.Identity, err = a.cfg.Identify(ctx, a.cfg.HTTPClient, got); err != nil {
		return a.cfg.providerDown(err)
	}
	if granted, _ := got.Extra("scope").(string); granted != "" { // absent means as requested (RFC 6749 §5.1)
		l.Scopes = strings.Fields(granted)
	}
	if err := a.replace(ctx, l, got); err != nil {
		return err
	}
	return l.covers(p.Scopes)
}

// replace stores the link in place of an existing one. It does not revoke an older refresh token: providers
// then revoke the user's whole consent, including the new one.
func (a *Accounts) replace(ctx context.Context, l link, got *oauth2.Token) (err error) {
	if l.ID, err = secret(a.cfg.Rand); err != nil {
		return err
	}
	l.Bound = true
	for range 3 {
		before, err := a.cfg.load(ctx, a.store, l.UID)
		if err != nil {
			return err
		}
		l.version, l.Account = before.version, l.ID
		if l.renews(before) {
			l.Account = before.place().ID
		}
		if err = a.seal(ctx, &l, got); err != nil {
			return err
		}
		entry, err := audit.Append(ctx, a.store, audit.Entry{UID: l.UID, At: l.LinkedAt, Kind: audit.Linked, Ref: l.ID,
			KeepDays: a.cfg.AuditDays})
		if err != nil {
			return storeDown(err)
		}
		if _, err = a.save(ctx, l, entry...); err == nil {
			return nil
		}
		if !errors.Is(err, store.ErrConflict) {
			return storeDown(err)
		}
	}
	return storeDown(store.ErrConflict)
}
