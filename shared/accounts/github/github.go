// Package github adds the GitHub parts to linking an account (package linking): a GitHub App's user tokens, the account
// that consented, and how access is revoked. It also provides the account of GITHUB_TOKEN (token.go).
//
// An App's access tokens live for 8 hours and its refresh tokens for 6 months. Using a refresh token invalidates it and
// the previous access token. An App can instead be configured to issue access tokens that do not expire; it then issues
// no refresh tokens
// (docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app/refreshing-user-access-tokens).
package github

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/tink-crypto/tink-go/v2/tink"
	"golang.org/x/oauth2"

	"github.com/countersign-run/countersign/shared/accounts/linking"
	"github.com/countersign-run/countersign/shared/store"
)

// GitHub's own addresses.
const (
	URL    = "https://github.com"
	APIURL = "https://api.github.com"
)

const (
	apiVersion = "2022-11-28" // of GitHub's REST API
	maxAnswer  = 64 << 10     // bytes of an answer that are read
	maxLogin   = 100          // bytes; on github.com at most 39 characters, on other servers possibly more
)

// Provider is GitHub, for programs without a GitHub App.
var Provider = linking.Provider{ID: "github", Name: "GitHub", Label: "As", Settings: settings(URL)}

// settings returns the page on which users of a GitHub server revoke the permissions of Apps.
func settings(address string) string { return address + "/settings/apps/authorizations" }

// Config configures the GitHub App and the GitHub server.
type Config struct {
	ClientID     string
	ClientSecret string
	URL          string // empty means github.com's; no trailing slash
	APIURL       string // empty means github.com's; no trailing slash
	RedirectURL  string // address of the callback, as registered with the App; https, or http on loopback

	AuditDays  int              // number of days that the record of a link is kept; 0: forever
	HTTPClient *http.Client     // its transport and timeout are used; nil means the default transport and 60 s
	Now        func() time.Time // nil means time.Now
	Rand       io.Reader        // nil means crypto/rand
}

// New returns the GitHub accounts in the store. cipher encrypts the tokens (see tokenkey). New makes no request. The
// error names the invalid setting.
func New(cfg Config, st store.Store, cipher tink.AEADWithContext) (*linking.Accounts, error) {
	cfg.URL, cfg.APIURL = cmp.Or(cfg.URL, URL), cmp.Or(cfg.APIURL, APIURL)
	if err := linking.Secure("APIURL", cfg.APIURL); err != nil {
		return nil, fmt.Errorf("github: %w", err)
	}
	of := Provider
	of.Settings = settings(cfg.URL)
	return linking.New(linking.Config{Provider: of, ClientID: cfg.ClientID, ClientSecret: cfg.ClientSecret,
		AuthURL: cfg.URL + "/login/oauth/authorize", TokenURL: cfg.URL + "/login/oauth/access_token",
		RedirectURL: cfg.RedirectURL, Ask: ask, Keeps: true,
		// GitHub returns these errors with status 200.
		Refusals: []string{"bad_verification_code", "bad_refresh_token"},
		Identify: func(ctx context.Context, c *http.Client, got *oauth2.Token) (linking.Identity, error) {
			return whose(ctx, c, cfg.APIURL, got.AccessToken)
		},
		Revoke:    revoker(cfg),
		AuditDays: cfg.AuditDays, HTTPClient: cfg.HTTPClient, Now: cfg.Now, Rand: cfg.Rand}, st, cipher)
}

// ask suggests the account that is linked at present.
func ask(before linking.Identity) map[string]string {
	if before.Login == "" {
		return nil
	}
	return map[string]string{"login": before.Login}
}

// whose returns the account that a token belongs to. It returns ErrRefused if GitHub does not accept the token.
func whose(ctx context.Context, c *http.Client, api, token string) (linking.Identity, error) {
	req, err := request(ctx, http.MethodGet, api+"/user", nil)
	if err != nil {
		return linking.Identity{}, err
	}
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := c.Do(req)
	if err != nil {
		return linking.Identity{}, err
	}
	defer resp.Body.Close()
	var user struct {
		ID    int64  `json:"id"`
		Login string `json:"login"`
	}
	switch {
	case resp.StatusCode == http.StatusUnauthorized:
		return linking.Identity{}, linking.ErrRefused
	case resp.StatusCode != http.StatusOK:
		return linking.Identity{}, fmt.Errorf("github: reading the user returned status %d", resp.StatusCode)
	case json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(&user) != nil:
		return linking.Identity{}, errors.New("github: the user cannot be read")
	case user.ID <= 0 || user.Login == "" || len(user.Login) > maxLogin || strings.ContainsFunc(user.Login, odd):
		return linking.Identity{}, errors.New("github: the user has no ID or no login")
	}
	return linking.Identity{Subject: strconv.FormatInt(user.ID, 10), Login: user.Login}, nil
}

// odd reports whether the character cannot occur in a login. Besides letters, digits and hyphens, logins of managed
// users contain underscores, and those of Apps brackets.
func odd(r rune) bool {
	letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
	return !letter && !strings.ContainsRune("-_[].", r)
}

// revoker returns a function that revokes everything that a user has granted to the App, with an access token of that
// grant: DELETE /applications/{client_id}/grant. GitHub answers 204, or 404 or 422 for an unknown token.
func revoker(cfg Config) func(context.Context, *http.Client, string) (bool, error) {
	address := cfg.APIURL + "/applications/" + url.PathEscape(cfg.ClientID) + "/grant"
	return func(ctx context.Context, c *http.Client, token string) (bool, error) {
		body, err := json.Marshal(map[string]string{"access_token": token})
		if err != nil {
			return false, err
		}
		req, err := request(ctx, http.MethodDelete, address, bytes.NewReader(body))
		if err != nil {
			return false, err
		}
		req.SetBasicAuth(cfg.ClientID, cfg.ClientSecret)
		req.Header.Set("Content-Type", "application/json")
		resp, err := c.Do(req)
		if err != nil {
			return false, err
		}
		defer resp.Body.Close()
		switch resp.StatusCode {
		case http.StatusNoContent:
			return true, nil
		case http.StatusNotFound, http.StatusUnprocessableEntity:
			return false, linking.ErrRefused
		}
		return false, fmt.Errorf("github: revoking the token returned status %d", resp.StatusCode)
	}
}

// request returns a request with the headers that GitHub's reference requires.
func request(ctx context.Context, method, address string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Accept", "application/vnd.github+json")
	req.Header.Set("X-GitHub-Api-Version", apiVersion)
	req.Header.Set("User-Agent", "countersign")
	return req, nil
}
