package api

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/linking"
)

// accounts returns the linked accounts, or an error if they are not configured.
func (r *request) accounts() (*linking.Accounts, error) {
	if r.api.Accounts == nil {
		return nil, fault.New(fault.Policy, fault.CodeNotApplicable,
			"No Google OAuth client is configured here; the local mailbox and calendar are used.")
	}
	return r.api.Accounts, nil
}

func getConnections(r *request) (any, error) {
	if r.api.Accounts == nil {
		return struct {
			ok
			Connections []linking.Connection `json:"connections"`
			Local       bool                 `json:"local"`
		}{ok{true}, []linking.Connection{}, true}, nil
	}
	list, err := r.api.Accounts.List(r.Context(), r.uid)
	if err != nil {
		return nil, err
	}
	return struct {
		ok
		Connections []linking.Connection `json:"connections"`
	}{ok{true}, list}, nil
}

// postConnection begins the linking of a Google account; the browser must go to the answer's url.
func postConnection(r *request) (any, error) {
	var in struct {
		Tools    []string `json:"tools"`
		ReturnTo string   `json:"returnTo"`
	}
	if _, err := r.decode(&in); err != nil {
		return nil, err
	}
	accounts, err := r.accounts()
	if err != nil {
		return nil, err
	}
	scopes, err := r.api.scopesOf(in.Tools)
	if err != nil {
		return nil, err
	}
	ctx, cancel := r.working()
	defer cancel()
	consent, err := accounts.Start(ctx, r.uid, scopes, in.ReturnTo)
	if err != nil {
		return nil, err
	}
	http.SetCookie(r.w, r.api.browserCookie(consent.Browser, 600))
	return struct {
		ok
		URL string `json:"url"`
	}{ok{true}, consent.URL}, nil
}

// scopesOf returns the scopes that the tools need; all tools' if none is named.
func (a *API) scopesOf(tools []string) ([]string, error) {
	if len(tools) == 0 {
		tools = a.Loop.Tools.Names()
	}
	seen := map[string]bool{}
	var scopes []string
	for _, name := range tools {
		t := a.Loop.Tools[name]
		if t == nil {
			return nil, fault.Invalid("tools", "there is no tool of this name")
		}
		for _, s := range t.Scopes {
			if !seen[s] {
				seen[s], scopes = true, append(scopes, s)
			}
		}
	}
	return scopes, nil
}

// browserCookie returns the cookie that binds a consent to the browser in which it was begun. It is not a session, and
// grants nothing else. Its name's prefix makes the browser restrict it to this host (RFC 6265bis §4.1.3.2), so that no
// other host of the domain can set one; browsers accept the prefix only over TLS, so on loopback the name is without
// it.
func (a *API) browserCookie(value string, seconds int) *http.Cookie {
	c := &http.Cookie{Name: "countersign_consent", Value: value, Path: "/", MaxAge: seconds, HttpOnly: true,
		SameSite: http.SameSiteLaxMode}
	if strings.HasPrefix(a.PublicURL, "https:") {
		c.Name, c.Secure = "__Host-"+c.Name, true
	}
	return c
}

// getCallback serves the redirect from Google. It carries no token of the user: the state, which is valid once,
// identifies the user.
func getCallback(r *request) (any, error) {
	accounts, err := r.accounts()
	if err != nil {
		return nil, err
	}
	q := r.URL.Query()
	ctx, cancel := r.working()
	defer cancel()
	answer := linking.Answer{State: q.Get("state"), Code: q.Get("code"), Error: q.Get("error")}
	if c, err := r.Cookie(r.api.browserCookie("", 0).Name); err == nil {
		answer.Browser = c.Value
	}
	uid, returnTo, err := accounts.Callback(ctx, answer)
	if err == nil || fault.Is(err, fault.Auth, fault.CodeScope) { // linked, perhaps with fewer scopes than requested
		if refused := r.api.Records.CheckReader(ctx, uid); refused != nil { // disabled meanwhile: the link is not kept
			_, unlinked := accounts.Unlink(ctx, uid)
			return nil, cmp.Or(unlinked, refused)
		}
	}
	if err != nil {
		return nil, err
	}
	http.SetCookie(r.w, r.api.browserCookie("", -1))
	r.w.Header().Set("Referrer-Policy", "no-referrer")
	http.Redirect(r.w, r.Request, returnTo, http.StatusSeeOther)
	return nil, nil
}

func deleteConnection(r *request) (any, error) {
	accounts, err := r.accounts()
	if err != nil {
		return nil, err
	}
	ctx, cancel := r.working()
	defer cancel()
	u, err := accounts.Unlink(ctx, r.uid)
	if err != nil {
		return nil, err
	}
	return struct {
		ok
		Existed bool `json:"existed"`
		Revoked bool `json:"revoked"`
	}{ok{true}, u.Existed, u.Revoked}, nil
}
