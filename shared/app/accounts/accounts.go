// Package accounts is the part that links users' Google accounts and acts in them.
package accounts

import (
	"context"
	"fmt"

	"github.com/countersign-run/countersign/shared/accounts/google"
	"github.com/countersign-run/countersign/shared/accounts/tokenkey"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/tools"
	"github.com/countersign-run/countersign/shared/config"
)

// Part acts in linked accounts. Consent also links accounts.
var (
	Part    = app.Part{Name: "accounts", Needs: config.Accounts, Open: open}
	Consent = app.Part{Name: "consent", Needs: config.Consent, Open: open}
)

// open opens the users' linked accounts if an OAuth client is configured. It requests the scopes of all configured
// Google tools.
func open(ctx context.Context, b *app.Builder) error {
	cfg := b.Config
	if cfg.OAuthClientID == "" {
		return nil
	}
	key, err := tokenkey.Open(ctx, tokenkey.Config{KMSKey: cfg.TokenKMSKey, Keyset: cfg.TokenKey.Reveal(),
		Dir: cfg.DataDir})
	if err != nil {
		return fmt.Errorf("the key that encrypts refresh tokens: %w", err)
	}
	linked, err := google.New(google.Config{ClientID: cfg.OAuthClientID, ClientSecret: cfg.OAuthClientSecret.Reveal(),
		AuthURL: cfg.OAuthAuthURL, TokenURL: cfg.OAuthTokenURL,
		RedirectURL: cfg.PublicURL + "/api/agent/connections/google/callback", Scopes: tools.Scopes(cfg), Now: b.Now,
		AuditDays: cfg.AuditDays}, b.Store, key)
	if err != nil {
		return err
	}
	b.Google, b.API.Accounts = linked, linked
	return nil
}
