package world

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// OAuth are the settings with which users link accounts of the cloud's Google themselves (World.Link), in the place of the
// one that each user has without them.
func (c *Cloud) OAuth() []string {
	return []string{"GOOGLE_OAUTH_CLIENT_ID=client.apps.example", "GOOGLE_OAUTH_CLIENT_SECRET=a-secret-of-the-client",
		"GOOGLE_OAUTH_AUTH_URL=" + c.URL + "/accounts/auth", "GOOGLE_OAUTH_TOKEN_URL=" + c.URL + "/accounts/token"}
}

// redeem is the token endpoint. A code and a refresh token are the account's name, and so is the access token.
func (c *Cloud) redeem(w http.ResponseWriter, r *http.Request) {
	account := r.PostFormValue("code") + r.PostFormValue("refresh_token")
	id, err := c.Issuer.Sign(map[string]any{"iss": c.Issuer.URL(), "sub": "google-" + account, "email": Address(account), "exp": time.Now().Add(time.Hour).Unix()})
	if err != nil {
		http.Error(w, "no ID token", http.StatusInternalServerError)
		return
	}
	_, scopes, _ := c.account(account)
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(map[string]any{"access_token": account, "refresh_token": account, "id_token": id, "token_type": "Bearer",
		"expires_in": 3600, "scope": strings.Join(scopes, " ")})
}

// Link has the user link the Google account of this name, as their browser would.
func (w *World) Link(ctx context.Context, uid, account string) error {
	begun, err := w.Call(ctx, uid, "POST", "/api/agent/connections/google", `{}`)
	if err != nil {
		return err
	}
	var consent struct{ URL string }
	if err := json.Unmarshal(begun.Body, &consent); err != nil || begun.HTTP != http.StatusOK {
		return fmt.Errorf("world: linking answered %d %s", begun.HTTP, begun.Body)
	}
	u, err := url.Parse(consent.URL)
	if err != nil {
		return err
	}
	back := w.Base + "/api/agent/connections/google/callback?" + url.Values{"state": {u.Query().Get("state")}, "code": {account}}.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, back, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Cookie", strings.SplitN(begun.Header.Get("Set-Cookie"), ";", 2)[0])
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusSeeOther {
		return fmt.Errorf("world: the callback answered %d", res.StatusCode)
	}
	return nil
}
