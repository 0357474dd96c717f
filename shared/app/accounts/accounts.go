// Package accounts is the part of the functions that act with users' linked Google accounts, or link them.
package accounts

import (
	"context"
	"fmt"
	"time"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/google"
	"github.com/countersign-run/countersign/shared/linking"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/tokenkey"
	"github.com/countersign-run/countersign/shared/tool"
)

// Part acts with linked accounts; Consent links them.
var (
	Part    = app.Part{Needs: config.Accounts, Link: link}
	Consent = app.Part{Needs: config.Consent, Link: link}
)

func link(c *app.Clients) { c.Accounts = open }

// open opens the users' linked accounts, or returns nil where no OAuth client is configured.
func open(ctx context.Context, cfg config.Config, st store.Store, tools tool.Set,
	now func() time.Time) (*linking.Accounts, error) {
	if cfg.OAuthClientID == "" {
		return nil, nil
	}
	key, err := tokenkey.Open(ctx, tokenkey.Config{KMSKey: cfg.TokenKMSKey, Keyset: cfg.TokenKey.Reveal(),
		Dir: cfg.DataDir})
	if err != nil {
		return nil, fmt.Errorf("the key that encrypts refresh tokens: %w", err)
	}
	var scopes []string
	for _, t := range tools {
		scopes = append(scopes, t.Scopes...)
	}
	return google.New(google.Config{ClientID: cfg.OAuthClientID, ClientSecret: cfg.OAuthClientSecret.Reveal(),
		AuthURL: cfg.OAuthAuthURL, TokenURL: cfg.OAuthTokenURL,
		RedirectURL: cfg.PublicURL + "/api/agent/connections/google/callback", Scopes: scopes, Now: now,
		AuditDays: cfg.AuditDays}, st, key)
}
