// Package google adds the Google parts to linking an account (package linking): Google's endpoints, how to ask for
// lasting access, the account that consented, and how access is revoked.
package google

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/tink-crypto/tink-go/v2/tink"
	"golang.org/x/oauth2"

	"github.com/countersign-run/countersign/shared/accounts/linking"
	"github.com/countersign-run/countersign/shared/store"
)

// Google's own endpoints (https://accounts.google.com/.well-known/openid-configuration).
const (
	AuthURL   = "https://accounts.google.com/o/oauth2/v2/auth"
	TokenURL  = "https://oauth2.googleapis.com/token"
	RevokeURL = "https://oauth2.googleapis.com/revoke"
)

// Provider describes Google for programs that read linked accounts but have no OAuth client.
var Provider = linking.Provider{ID: "google", Name: "Google", Label: "From",
	Settings: "https://myaccount.google.com/permissions"}

// Config configures the OAuth client and its endpoints.
type Config struct {
	ClientID     string
	ClientSecret string
	AuthURL      string // empty means Google's
	TokenURL     string // empty means Google's
	// RevokeURL is Google's if both it and TokenURL are empty. If only RevokeURL is empty, nothing is revoked at the
	// provider.
	RevokeURL   string
	RedirectURL string // address of the callback, as registered with the provider; https, or http on loopback

	// Scopes lists the scopes that the tools need, at least one. No other scope can be requested.
	Scopes []string

	AuditDays  int              // number of days that the record of a link is kept; 0: forever
	HTTPClient *http.Client     // its transport and timeout are used; nil means the default transport and 60 s
	Now        func() time.Time // nil means time.Now
	Rand       io.Reader        // nil means crypto/rand
}

// New returns the Google accounts in the store. cipher encrypts the refresh tokens (see tokenkey). New makes no
// request. The error names the invalid setting.
func New(cfg Config, st store.Store, cipher tink.AEADWithContext) (*linking.Accounts, error) {
	if len(cfg.Scopes) == 0 {
		return nil, errors.New("google: the tools' scopes are required")
	}
	if cfg.TokenURL == "" {
		cfg.RevokeURL = cmp.Or(cfg.RevokeURL, RevokeURL)
	}
	if cfg.RevokeURL != "" {
		if err := linking.Secure("RevokeURL", cfg.RevokeURL); err != nil {
			return nil, fmt.Errorf("google: %w", err)
		}
	}
	return linking.New(linking.Config{Provider: Provider, ClientID: cfg.ClientID, ClientSecret: cfg.ClientSecret,
		AuthURL: cmp.Or(cfg.AuthURL, AuthURL), TokenURL: cmp.Or(cfg.TokenURL, TokenURL), RedirectURL: cfg.RedirectURL,
		Scopes: cfg.Scopes, IdentityScopes: []string{"openid", "email"},
		Ask: ask, Identify: identify, Revoke: revoker(cfg.RevokeURL),
		AuditDays: cfg.AuditDays, HTTPClient: cfg.HTTPClient, Now: cfg.Now, Rand: cfg.Rand}, st, cipher)
}

// ask returns parameters that request a refresh token and keep the scopes that were granted before.
func ask(before linking.Identity) map[string]string {
	with := map[string]string{
		"access_type":            "offline",
		"include_granted_scopes": "true",
		// Google issues a refresh token for new scopes only after it has asked the user.
		"prompt": "consent",
	}
	if before.Email != "" {
		with["login_hint"] = before.Email
	}
	return with
}

// identify reads the account's subject and address from the ID token. The token came directly from the token endpoint
// over TLS, which replaces a signature check (OpenID Connect Core 1.0 §3.1.3.7). Users know the account by its address,
// Google by its subject. If the ID token cannot be read, the account is linked without either.
func identify(_ context.Context, _ *http.Client, got *oauth2.Token) (linking.Identity, error) {
	raw, _ := got.Extra("id_token").(string)
	parsed, err := jwt.ParseSigned(raw, []jose.SignatureAlgorithm{jose.RS256})
	if err != nil {
		return linking.Identity{}, nil
	}
	var claims struct {
		Subject string `json:"sub"`
		Email   string `json:"email"`
	}
	if parsed.UnsafeClaimsWithoutVerification(&claims) != nil || len(claims.Subject) > 255 || len(claims.Email) > 320 {
		return linking.Identity{}, nil
	}
	return linking.Identity{Subject: claims.Subject, Email: claims.Email}, nil
}

// revoker returns a function that revokes a refresh token at the address (RFC 7009). Google returns 400 invalid_token
// for a token that is already revoked.
func revoker(address string) func(context.Context, *http.Client, string) (bool, error) {
	if address == "" {
		return func(context.Context, *http.Client, string) (bool, error) { return false, nil }
	}
	return func(ctx context.Context, c *http.Client, refresh string) (bool, error) {
		form := strings.NewReader(url.Values{"token": {refresh}}.Encode())
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, form)
		if err != nil {
			return false, err
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		resp, err := c.Do(req)
		if err != nil {
			return false, err
		}
		defer resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return true, nil
		}
		var answer struct {
			Error string `json:"error"`
		}
		err = json.NewDecoder(io.LimitReader(resp.Body, 64<<10)).Decode(&answer)
		return err == nil && resp.StatusCode == http.StatusBadRequest && answer.Error == "invalid_token", nil
	}
}
