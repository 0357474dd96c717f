// Package github is the part that links users' GitHub accounts and acts in them.
package github

import (
	"context"
	"fmt"

	"github.com/countersign-run/countersign/shared/accounts/github"
	"github.com/countersign-run/countersign/shared/accounts/tokenkey"
	"github.com/countersign-run/countersign/shared/app"
)

// Part links GitHub accounts if a GitHub App is configured. Token makes one user act with GITHUB_TOKEN, only in
// programs on one machine.
var (
	Part  = app.Part{Name: "github", Open: open}
	Token = app.Part{Name: "github-token", Uses: []string{"github"}, Open: openToken}
)

// openToken makes the token's user act with it. Other users act in their linked accounts.
func openToken(_ context.Context, b *app.Builder) error {
	cfg := b.Config
	if cfg.GitHubTokenUser == "" {
		return nil
	}
	linked := b.GitHub
	if cfg.GitHubClientID == "" {
		linked = nil
	}
	accounts, err := github.WithToken(linked, github.TokenConfig{UID: cfg.GitHubTokenUser,
		Token: cfg.GitHubToken.Reveal(), APIURL: cfg.GitHubAPIURL})
	if err != nil {
		return err
	}
	b.GitHub, b.API.Token = accounts, accounts
	return nil
}

// open opens the users' linked accounts if a GitHub App is configured.
func open(ctx context.Context, b *app.Builder) error {
	cfg := b.Config
	if cfg.GitHubClientID == "" {
		return nil
	}
	key, err := tokenkey.Open(ctx, tokenkey.Config{KMSKey: cfg.TokenKMSKey, Keyset: cfg.TokenKey.Reveal(),
		Dir: cfg.DataDir})
	if err != nil {
		return fmt.Errorf("the key that encrypts users' tokens: %w", err)
	}
	linked, err := github.New(github.Config{ClientID: cfg.GitHubClientID,
		ClientSecret: cfg.GitHubClientSecret.Reveal(), URL: cfg.GitHubURL, APIURL: cfg.GitHubAPIURL,
		RedirectURL: cfg.PublicURL + "/api/agent/connections/github/callback", Now: b.Now, AuditDays: cfg.AuditDays},
		b.Store, key)
	if err != nil {
		return err
	}
	b.GitHub, b.API.GitHub = linked, linked
	return nil
}
