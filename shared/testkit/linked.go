package testkit

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
)

const (
	clientID, clientSecret = "client.apps.example", "a-secret-of-the-client"
	appID, appSecret       = "Iv1.0123456789abcdef", "a-secret-of-the-app"
	githubAPI              = "/api/v3" // as on a GitHub Enterprise server
)

// app returns the settings for linking accounts of the cloud's GitHub.
func (c *Cloud) app() map[string]string {
	return map[string]string{"GITHUB_CLIENT_ID": appID, "GITHUB_CLIENT_SECRET": appSecret, "GITHUB_URL": c.URL,
		"GITHUB_API_URL": c.URL + githubAPI}
}

// oauth returns the settings for linking accounts of the cloud's Google.
func (c *Cloud) oauth() map[string]string {
	return map[string]string{"GOOGLE_OAUTH_CLIENT_ID": clientID, "GOOGLE_OAUTH_CLIENT_SECRET": clientSecret,
		"GOOGLE_OAUTH_AUTH_URL": c.URL + "/accounts/auth", "GOOGLE_OAUTH_TOKEN_URL": c.URL + "/accounts/token"}
}

// SignIn returns an ID token of the user and links the user's Google account (see SignedIn).
func (d *Deployment) SignIn(ctx context.Context, uid string) (token string, err error) {
	if token, err = d.Token(uid); err != nil {
		return "", err
	}
	return token, d.SignedIn(ctx, uid, token)
}

// SignedIn links the Google account of the same name for a user with an ID token, unless the deployment is Unlinked or
// the user has a linked account. If several clients of one user sign in at once, the account is linked once.
func (d *Deployment) SignedIn(ctx context.Context, uid, token string) error {
	if d.Unlinked {
		return nil
	}
	return d.links.do(uid, func() error { return d.linkFirst(ctx, uid, token) })
}

func (d *Deployment) linkFirst(ctx context.Context, account, token string) error {
	got, err := Connect(nil, d.Base, token)(ctx, "GET", "/api/agent/connections", nil)
	if err != nil {
		return err
	}
	type connection struct{ Provider string }
	var has struct{ Connections []connection }
	if err := json.Unmarshal(got.Body, &has); err != nil || got.HTTP != http.StatusOK {
		return fmt.Errorf("testkit: listing the linked accounts returned %d %s", got.HTTP, got.Body)
	}
	if slices.ContainsFunc(has.Connections, func(c connection) bool { return c.Provider == "google" }) {
		return nil
	}
	return d.link(ctx, token, account)
}

// Link links the Google account of this name to the user, as their browser would. It replaces any other account.
func (d *Deployment) Link(ctx context.Context, uid, account string) error {
	token, err := d.Token(uid)
	if err != nil {
		return err
	}
	return d.link(ctx, token, account)
}

func (d *Deployment) link(ctx context.Context, token, account string) error {
	return d.linkAt(ctx, token, "google", func(page string) (state, code string, err error) {
		return d.OAuth.Consent(page, Address(account))
	})
}

// LinkGitHub links the GitHub account with this login to the user, as their browser would. It replaces any other
// account.
func (d *Deployment) LinkGitHub(ctx context.Context, uid, login string) error {
	token, err := d.Token(uid)
	if err != nil {
		return err
	}
	return d.LinkGitHubBy(ctx, token, login)
}

// LinkGitHubBy is like LinkGitHub for the user of an ID token.
func (d *Deployment) LinkGitHubBy(ctx context.Context, token, login string) error {
	return d.linkAt(ctx, token, "github", func(page string) (state, code string, err error) {
		return d.GitHubApp.Consent(page, login)
	})
}

func (d *Deployment) linkAt(ctx context.Context, token, provider string,
	agree func(page string) (state, code string, err error)) error {
	path := "/api/agent/connections/" + provider
	started, err := Connect(nil, d.Base, token)(ctx, "POST", path, `{}`)
	if err != nil {
		return err
	}
	var consent struct{ URL string }
	if err := json.Unmarshal(started.Body, &consent); err != nil || started.HTTP != http.StatusOK {
		return fmt.Errorf("testkit: linking returned %d %s", started.HTTP, started.Body)
	}
	state, code, err := agree(consent.URL)
	if err != nil {
		return err
	}
	back := d.Base + path + "/callback?" + url.Values{"state": {state}, "code": {code}}.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, back, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Cookie", strings.SplitN(started.Header.Get("Set-Cookie"), ";", 2)[0])
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusSeeOther {
		return fmt.Errorf("testkit: the callback returned %d", res.StatusCode)
	}
	return nil
}

// once runs a function once for each user, even if several goroutines call it at the same time. A failed function runs
// again at the next call. The zero value is ready for use.
type once struct {
	mu    sync.Mutex
	users map[string]*done
}

type done struct {
	mu  sync.Mutex
	yes bool
}

func (o *once) do(uid string, what func() error) error {
	d := o.of(uid)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.yes {
		return nil
	}
	err := what()
	d.yes = err == nil
	return err
}

func (o *once) of(uid string) *done {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.users == nil {
		o.users = map[string]*done{}
	}
	if o.users[uid] == nil {
		o.users[uid] = &done{}
	}
	return o.users[uid]
}
