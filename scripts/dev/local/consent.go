package main

import (
	"context"
	"crypto/rand"
	"io"
	"time"

	"github.com/countersign-run/countersign/shared/accounts/linking"
	"github.com/countersign-run/countersign/shared/base/keyfile"
	"github.com/countersign-run/countersign/shared/testkit/fakegoogle"
	"github.com/countersign-run/countersign/shared/testkit/fakeoauth"
	"github.com/countersign-run/countersign/shared/testkit/issuer"
)

// The OAuth client and the endpoints of the local Google.
const (
	localClient  = "local-client.apps.localhost"
	localSecret  = "of-no-use-outside-of-this-machine"
	accountsPath = "/dev/accounts/"
	consentPath  = accountsPath + "auth"
	redeemPath   = accountsPath + "token"
	callbackPath = "/api/agent/connections/google/callback"
)

// openOAuth returns the accounts of the local Google. Each local user's address is an account.
func openOAuth(dir, base string, iss *issuer.Issuer) (*fakegoogle.OAuth, error) {
	key, err := keyfile.Read(dir, "local-google-key", func(w io.Writer) error {
		_, err := io.CopyN(w, rand.Reader, 32)
		return err
	})
	return fakegoogle.NewOAuth(fakegoogle.OAuthOptions{
		Client: fakeoauth.Client{ClientID: localClient, ClientSecret: localSecret, Redirect: base + callbackPath,
			Key: key},
		Issuer: iss, Scopes: func(string) []string { return localScopes }}), err
}

// link links the local accounts of a user who signs in, through the usual consent flow. All users share one account at
// the local GitHub. If the user has linked a different account in the meantime, it stays linked until they sign in with
// another address. A failure does not prevent the sign-in: the user is asked to link an account when one is needed.
func (s *server) link(ctx context.Context, uid, email string, changed bool) {
	if s.env.localGoogle() {
		s.linkTo(ctx, s.app.API.Accounts, uid, changed, func(u string) (string, string, error) {
			return s.oauth.Consent(u, email)
		})
	}
	if s.env.localGitHub() {
		s.linkTo(ctx, s.app.API.GitHub, uid, false, func(u string) (string, string, error) {
			return s.githubApp.Consent(u, demoLogin)
		})
	}
}

// consent acts as a user who follows an address to a consent page, and returns the state and code of the redirect.
type consent func(address string) (state, code string, err error)

func (s *server) linkTo(ctx context.Context, accounts *linking.Accounts, uid string, changed bool,
	agree consent) {
	if accounts == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	linked, err := accounts.List(ctx, uid)
	if err == nil && (changed || len(linked) == 0) {
		err = agreed(ctx, accounts, uid, agree)
	}
	if err != nil {
		s.app.Log.WarnContext(ctx, "linking the local account at sign-in failed", "error", err)
	}
}

func agreed(ctx context.Context, accounts *linking.Accounts, uid string, agree consent) error {
	begun, err := accounts.Start(ctx, uid, nil, "/")
	if err != nil {
		return err
	}
	state, code, err := agree(begun.URL)
	if err != nil {
		return err
	}
	_, _, err = accounts.Callback(ctx, linking.Answer{State: state, Code: code, Browser: begun.Browser})
	return err
}
