// Package github is the part of the functions that link users' GitHub accounts, or act with them.
package github

import (
	"context"
	"fmt"
	"time"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/github"
	"github.com/countersign-run/countersign/shared/linking"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/tokenkey"
)

// Part links GitHub accounts where a GitHub App is configured. Token has one user act with the token of GITHUB_TOKEN,
// which only programs on one machine do.
var (
	Part  = app.Part{Link: func(c *app.Clients) { c.GitHub = open }}
	Token = app.Part{Link: func(c *app.Clients) { c.Token = withToken }}
)

// withToken returns nil where no token is configured.
func withToken(cfg config.Config, linked app.Accounts) (app.TokenAccounts, error) {
	if cfg.GitHubTokenUser == "" {
		return nil, nil
	}
	if cfg.GitHubClientID == "" {
		linked = nil
	}
	return github.WithToken(linked, github.TokenConfig{UID: cfg.GitHubTokenUser, Token: cfg.GitHubToken.Reveal(),
		APIURL: cfg.GitHubAPIURL})
}

// open opens the users' linked accounts, or returns nil where no GitHub App is configured.
func open(ctx context.Context, cfg config.Config, st store.Store, now func() time.Time) (*linking.Accounts, error) {
	if cfg.GitHubClientID == "" {
		return nil, nil
	}
	key, err := tokenkey.Open(ctx, tokenkey.Config{KMSKey: cfg.TokenKMSKey, Keyset: cfg.TokenKey.Reveal(),
		Dir: cfg.DataDir})
	if err != nil {
		return nil, fmt.Errorf("the key that encrypts users' tokens: %w", err)
	}
	return github.New(github.Config{ClientID: cfg.GitHubClientID, ClientSecret: cfg.GitHubClientSecret.Reveal(),
		URL: cfg.GitHubURL, APIURL: cfg.GitHubAPIURL,
		RedirectURL: cfg.PublicURL + "/api/agent/connections/github/callback", Now: now, AuditDays: cfg.AuditDays},
		st, key)
}
