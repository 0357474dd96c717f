// Package github is what linking an account at GitHub takes beyond linking any (package linking): a GitHub App's user
// tokens, whose account consented, and how access is taken back; and beside linked accounts the one of GITHUB_TOKEN
// (token.go).
//
// An App's access tokens live 8 hours and its refresh tokens 6 months; the use of a refresh token ends it and the
// access token before. An App may also be set up to give access tokens that do not end, and then gives no others
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

	"github.com/countersign-run/countersign/shared/linking"
	"github.com/countersign-run/countersign/shared/store"
)

// GitHub's own addresses.
const (
	URL    = "https://github.com"
	APIURL = "https://api.github.com"
)

const (
	apiVersion = "2022-11-28" // of GitHub's REST API
	maxAnswer  = 64 << 10     // bytes that are read of an answer
	maxLogin   = 100          // bytes; GitHub's have at most 39 characters, a server's own may be longer
)

// Provider is GitHub, for programs without a GitHub App.
var Provider = linking.Provider{ID: "github", Name: "GitHub", Label: "As", Settings: settings(URL)}

// settings returns the page where users of a GitHub take back what Apps may do for them.
func settings(address string) string { return address + "/settings/apps/authorizations" }

// Config configures the GitHub App and where GitHub is.
type Config struct {
	ClientID     string
	ClientSecret string
	URL          string // GitHub's if empty; no slash at its end
	APIURL       string // GitHub's if empty; no slash at its end
	RedirectURL  string // address of the callback, as registered with the App; https, or http on loopback

	AuditDays  int              // for how many days the record of a link is kept; 0: for good
	HTTPClient *http.Client     // its transport and timeout are used; nil means the default transport and 60 s
	Now        func() time.Time // nil means time.Now
	Rand       io.Reader        // nil means crypto/rand
}

// New returns the GitHub accounts in the store, with the cipher for tokens (see tokenkey). It makes no call. The error
// names the setting that is invalid.
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
		// GitHub answers them with 200.
		Refusals: []string{"bad_verification_code", "bad_refresh_token"},
		Identify: func(ctx context.Context, c *http.Client, got *oauth2.Token) (linking.Identity, error) {
			return whose(ctx, c, cfg.APIURL, got.AccessToken)
		},
		Revoke:    revoker(cfg),
		AuditDays: cfg.AuditDays, HTTPClient: cfg.HTTPClient, Now: cfg.Now, Rand: cfg.Rand}, st, cipher)
}

// ask suggests the account that is linked by now.
func ask(before linking.Identity) map[string]string {
	if before.Login == "" {
		return nil
	}
	return map[string]string{"login": before.Login}
}

// whose returns the account that a token is for. Its error is ErrRefused if GitHub does not accept the token.
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
		return linking.Identity{}, fmt.Errorf("github: asked for the user it answered %d", resp.StatusCode)
	case json.NewDecoder(io.LimitReader(resp.Body, maxAnswer)).Decode(&user) != nil:
		return linking.Identity{}, errors.New("github: the user cannot be read")
	case user.ID <= 0 || user.Login == "" || len(user.Login) > maxLogin || strings.ContainsFunc(user.Login, odd):
		return linking.Identity{}, errors.New("github: the user has no id or no login")
	}
	return linking.Identity{Subject: strconv.FormatInt(user.ID, 10), Login: user.Login}, nil
}

// odd reports whether no login has the character. Besides letters, digits and hyphens, managed users' have underscores
// and Apps' brackets.
func odd(r rune) bool {
	letter := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
	return !letter && !strings.ContainsRune("-_[].", r)
}

// revoker returns what takes back all that a user has granted to the App, with an access token of that consent:
// DELETE /applications/{client_id}/grant, which answers 204, and 404 or 422 for a token that it does not know.
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
		return false, fmt.Errorf("github: the revocation answered %d", resp.StatusCode)
	}
}

// request returns a request as GitHub's reference asks for it.
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
