package api

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/countersign-run/countersign/shared/accounts/linking"
	"github.com/countersign-run/countersign/shared/base/fault"
)

// provider is a service where users have accounts to link.
type provider struct {
	id     string
	of     func(*API) *linking.Accounts
	absent string // the message if this provider is not configured
	// name of the consent's cookie; each provider has its own, so two open consents do not overwrite each other
	cookie string
	// asks returns the scopes to request and the page that the browser returns to.
	asks func(r *request) (scopes []string, returnTo string, err error)
}

// The providers.
var (
	atGoogle = provider{
		id:     "google",
		of:     func(a *API) *linking.Accounts { return a.Accounts },
		absent: "No Google OAuth client is configured here; the local mailbox and calendar are used.",
		cookie: "countersign_consent",
		asks: func(r *request) ([]string, string, error) {
			var in googleRequest
			if _, err := r.decode(&in); err != nil {
				return nil, "", err
			}
			if r.api.Accounts == nil {
				return nil, in.ReturnTo, nil // connect reports the missing configuration
			}
			scopes, err := r.api.scopesOf(in.Tools)
			return scopes, in.ReturnTo, err
		},
	}
	atGitHub = provider{
		id:     "github",
		of:     func(a *API) *linking.Accounts { return a.GitHub },
		absent: "No GitHub App is configured here, so no GitHub account can be linked.",
		cookie: "countersign_github",
		// the permissions of a GitHub App are chosen where it is installed
		asks: func(r *request) ([]string, string, error) {
			var in githubRequest
			_, err := r.decode(&in)
			return nil, in.ReturnTo, err
		},
	}
)

// The bodies of requests and responses about links.
type (
	googleRequest struct {
		Tools    []string `json:"tools"`
		ReturnTo string   `json:"returnTo"`
	}
	githubRequest struct {
		ReturnTo string `json:"returnTo"`
	}
	consentAnswer struct {
		ok
		URL string `json:"url"`
	}
	unlinkedAnswer struct {
		ok
		Existed bool `json:"existed"`
		Revoked bool `json:"revoked"`
	}
	connectionsAnswer struct {
		ok
		Connections []linking.Connection `json:"connections"`
		Providers   []string             `json:"providers"`
		Local       bool                 `json:"local,omitempty"`
	}
)

// Token describes the account that one user acts as with a configured token, without a link.
type Token interface {
	// Connection returns the account for that user, and nil for every other user.
	Connection(ctx context.Context, uid string) *linking.Connection
}

// accounts returns the provider's linked accounts, or an error if they are not configured.
func (p provider) accounts(r *request) (*linking.Accounts, error) {
	if a := p.of(r.api); a != nil {
		return a, nil
	}
	return nil, fault.New(fault.Policy, fault.CodeNotApplicable, "%s", p.absent)
}

func getConnections(r *request) (any, error) {
	answer := connectionsAnswer{ok{true}, []linking.Connection{}, []string{}, r.api.Accounts == nil}
	for _, p := range []provider{atGoogle, atGitHub} {
		accounts := p.of(r.api)
		if accounts == nil {
			continue
		}
		list, err := accounts.List(r.Context(), r.uid)
		if err != nil {
			return nil, err
		}
		answer.Connections = append(answer.Connections, list...)
		answer.Providers = append(answer.Providers, p.id)
	}
	if r.api.Token != nil {
		if c := r.api.Token.Connection(r.Context(), r.uid); c != nil {
			answer.Connections = append(answer.Connections, *c)
		}
	}
	return answer, nil
}

// connect starts the linking of an account. The browser must go to the answer's url.
func (p provider) connect(r *request) (any, error) {
	scopes, returnTo, err := p.asks(r)
	if err != nil {
		return nil, err
	}
	accounts, err := p.accounts(r)
	if err != nil {
		return nil, err
	}
	ctx, cancel := r.working()
	defer cancel()
	consent, err := accounts.Start(ctx, r.uid, scopes, returnTo)
	if err != nil {
		return nil, err
	}
	http.SetCookie(r.w, p.browserCookie(r.api, consent.Browser, 600))
	return consentAnswer{ok{true}, consent.URL}, nil
}

// scopesOf returns the scopes that the tools need. With no tools, it returns the scopes of all tools with side effects.
// The scopes of read-only tools, and of tools that an agent has only if its file names them, are requested when a user
// first needs them.
func (a *API) scopesOf(tools []string) ([]string, error) {
	if len(tools) == 0 {
		tools = slices.DeleteFunc(a.Loop.Tools.Names(),
			func(name string) bool { return !a.Loop.Tools[name].SideEffect || a.Loop.Tools[name].Named })
	}
	seen := map[string]bool{}
	var scopes []string
	for _, name := range tools {
		t := a.Loop.Tools[name]
		if t == nil {
			return nil, fault.Invalid("tools", "no tool has this name")
		}
		for _, s := range t.Scopes {
			if !seen[s] {
				seen[s], scopes = true, append(scopes, s)
			}
		}
	}
	return scopes, nil
}

// browserCookie returns the cookie that binds a consent to the browser that started it. It is not a session and grants
// nothing else. Its prefix __Host- makes the browser restrict it to this host (RFC 6265bis §4.1.3.2), so no other host
// of the domain can set it. Browsers accept the prefix only over TLS, so the name has no prefix on loopback.
func (p provider) browserCookie(a *API, value string, seconds int) *http.Cookie {
	c := &http.Cookie{Name: p.cookie, Value: value, Path: "/", MaxAge: seconds, HttpOnly: true,
		SameSite: http.SameSiteLaxMode}
	if strings.HasPrefix(a.PublicURL, "https:") {
		c.Name, c.Secure = "__Host-"+c.Name, true
	}
	return c
}

// callback serves the redirect from the provider. It carries no user token: the state, which is valid once, identifies
// the user. A browser returns to the page that started the consent, even if linking failed. A client that does not
// accept HTML gets the error itself.
func (p provider) callback(r *request) (any, error) {
	returnTo, err := p.finish(r)
	page := strings.Contains(r.Header.Get("Accept"), "text/html")
	if err != nil && !page {
		return nil, err
	}
	if err != nil {
		r.api.Log.WarnContext(r.Context(), "linking an account failed", "provider", p.id, "error",
			err)
		returnTo = unlinked(returnTo, p.id, fault.As(err).Code)
	}
	http.SetCookie(r.w, p.browserCookie(r.api, "", -1))
	r.w.Header().Set("Referrer-Policy", "no-referrer")
	http.Redirect(r.w, r.Request, returnTo, http.StatusSeeOther)
	return nil, nil
}

// finish completes the consent, and returns the page that started it, if known.
func (p provider) finish(r *request) (returnTo string, err error) {
	accounts, err := p.accounts(r)
	if err != nil {
		return "", err
	}
	q := r.URL.Query()
	ctx, cancel := r.working()
	defer cancel()
	answer := linking.Answer{State: q.Get("state"), Code: q.Get("code"), Error: q.Get("error")}
	if c, err := r.Cookie(p.browserCookie(r.api, "", 0).Name); err == nil {
		answer.Browser = c.Value
	}
	uid, returnTo, err := accounts.Callback(ctx, answer)
	if err == nil || fault.Is(err, fault.Auth, fault.CodeScope) { // linked, perhaps with fewer scopes than requested
		// the user was disabled meanwhile: remove the link
		if refused := r.api.Records.CheckReader(ctx, uid); refused != nil {
			_, unlinked := accounts.Unlink(ctx, uid)
			return returnTo, cmp.Or(unlinked, refused)
		}
	}
	return returnTo, err
}

// unlinked returns the page's URL with the provider and the error code added, so the page can show why linking failed.
func unlinked(page, provider string, why fault.Code) string {
	u, err := url.Parse(cmp.Or(page, "/"))
	if err != nil {
		u = &url.URL{Path: "/"}
	}
	q := u.Query()
	q.Set("unlinked", provider)
	q.Set("why", string(why))
	u.RawQuery = q.Encode()
	return u.String()
}

func (p provider) disconnect(r *request) (any, error) {
	accounts, err := p.accounts(r)
	if err != nil {
		return nil, err
	}
	ctx, cancel := r.working()
	defer cancel()
	u, err := accounts.Unlink(ctx, r.uid)
	if err != nil {
		return nil, err
	}
	return unlinkedAnswer{ok{true}, u.Existed, u.Revoked}, nil
}
