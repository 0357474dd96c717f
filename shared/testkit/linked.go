package testkit

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

const clientID, clientSecret = "client.apps.example", "a-secret-of-the-client"

// oauth returns the settings by which users link accounts of the cloud's Google.
func (c *Cloud) oauth() map[string]string {
	return map[string]string{"GOOGLE_OAUTH_CLIENT_ID": clientID, "GOOGLE_OAUTH_CLIENT_SECRET": clientSecret,
		"GOOGLE_OAUTH_AUTH_URL": c.URL + "/accounts/auth", "GOOGLE_OAUTH_TOKEN_URL": c.URL + "/accounts/token"}
}

// SignIn returns an ID token of the user, whose Google account is linked from then on (SignedIn).
func (d *Deployment) SignIn(ctx context.Context, uid string) (token string, err error) {
	if token, err = d.Token(uid); err != nil {
		return "", err
	}
	return token, d.SignedIn(ctx, uid, token)
}

// SignedIn links the Google account of the same name for a user with an ID token, unless the deployment is Unlinked or
// they have linked one already. However many clients of one user sign in at once, it is linked once.
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
	var has struct{ Connections []json.RawMessage }
	if err := json.Unmarshal(got.Body, &has); err != nil || got.HTTP != http.StatusOK {
		return fmt.Errorf("testkit: asked for the linked accounts it answered %d %s", got.HTTP, got.Body)
	}
	if len(has.Connections) > 0 {
		return nil
	}
	return d.link(ctx, token, account)
}

// Link has the user link the Google account of this name, in the place of any other, as their browser would.
func (d *Deployment) Link(ctx context.Context, uid, account string) error {
	token, err := d.Token(uid)
	if err != nil {
		return err
	}
	return d.link(ctx, token, account)
}

func (d *Deployment) link(ctx context.Context, token, account string) error {
	started, err := Connect(nil, d.Base, token)(ctx, "POST", "/api/agent/connections/google", `{}`)
	if err != nil {
		return err
	}
	var consent struct{ URL string }
	if err := json.Unmarshal(started.Body, &consent); err != nil || started.HTTP != http.StatusOK {
		return fmt.Errorf("testkit: linking answered %d %s", started.HTTP, started.Body)
	}
	state, code, err := d.OAuth.Consent(consent.URL, Address(account))
	if err != nil {
		return err
	}
	back := d.Base + "/api/agent/connections/google/callback?" +
		url.Values{"state": {state}, "code": {code}}.Encode()
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
		return fmt.Errorf("testkit: the callback answered %d", res.StatusCode)
	}
	return nil
}

// once does something once for each user, however many goroutines ask at the same time; what failed is tried again. The
// zero value is ready for use.
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
