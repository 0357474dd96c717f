package github

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/accounts/linking"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/outbound"
)

// Setting is the name of the setting that contains the token.
const Setting = "GITHUB_TOKEN"

// Linked provides the accounts that users have linked.
type Linked interface {
	Place(ctx context.Context, uid string, scopes []string) (tool.Place, error)
	Client(ctx context.Context, uid string, in tool.Place) (*http.Client, error)
	Reads(uid string) []string
}

// TokenConfig is the token of one user, who gave it to the operator of the program: GITHUB_TOKEN and GITHUB_TOKEN_USER.
type TokenConfig struct {
	UID        string
	Token      string
	APIURL     string       // empty means GitHub's
	HTTPClient *http.Client // its transport and timeout are used; nil means the default transport and 60 s
}

// Accounts provides linked accounts, and for one user the account of a token. It is safe for concurrent use.
type Accounts struct {
	Linked
	cfg    TokenConfig
	client http.Client // sends the token
	plain  http.Client // without the token

	mu    sync.Mutex
	place tool.Place // of the token, once GitHub has returned it
}

// WithToken returns the linked accounts, and for the token's user the token's account. It ignores an account that this
// user has linked. linked is nil if accounts cannot be linked. The error names the invalid setting.
func WithToken(linked Linked, cfg TokenConfig) (*Accounts, error) {
	if linked == nil {
		linked = noAccounts{}
	}
	cfg.APIURL = cmp.Or(cfg.APIURL, APIURL)
	if err := linking.Secure("APIURL", cfg.APIURL); err != nil {
		return nil, err
	}
	if cfg.UID == "" || cfg.Token == "" {
		return nil, errors.New("github: a token and its user are required")
	}
	a := &Accounts{Linked: linked, cfg: cfg, client: http.Client{Timeout: time.Minute}}
	if cfg.HTTPClient != nil {
		a.client = *cfg.HTTPClient
	}
	// A redirect would carry the token to another host.
	a.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	a.plain = a.client
	base := a.client.Transport
	if base == nil {
		base = outbound.Default()
	}
	a.client.Transport = bearer{cfg.Token, base}
	return a, nil
}

// Place returns the account that the user's calls act in. For the token's user, it asks GitHub once. The errors are
// those of linked accounts. For the token's user they are AuthError reauth_required if GitHub does not accept the
// token, and ToolExecutionError token_endpoint, which is transient, if GitHub cannot be asked.
func (a *Accounts) Place(ctx context.Context, uid string, scopes []string) (tool.Place, error) {
	if uid != a.cfg.UID {
		return a.Linked.Place(ctx, uid, scopes)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.place != (tool.Place{}) {
		return a.place, nil
	}
	who, err := whose(ctx, &a.plain, a.cfg.APIURL, a.cfg.Token)
	switch {
	case errors.Is(err, linking.ErrRefused):
		return tool.Place{}, refused()
	case err != nil:
		return tool.Place{}, tool.Transient(fault.New(fault.Tool, "token_endpoint",
			"The owner of GITHUB_TOKEN could not be read from GitHub; please try again."))
	}
	a.place = tool.Place{Label: Provider.Label, Name: who.Login, ID: "token-" + who.Subject}
	return a.place, nil
}

// Client returns an HTTP client that acts as the user, only in the account that Place returned. It returns the errors
// of Place, and PolicyError stale_view if the account has changed.
func (a *Accounts) Client(ctx context.Context, uid string, in tool.Place) (*http.Client, error) {
	if uid != a.cfg.UID {
		return a.Linked.Client(ctx, uid, in)
	}
	now, err := a.Place(ctx, uid, nil)
	if err != nil {
		return nil, err
	}
	if err := tool.SamePlace(in, now); err != nil {
		return nil, err
	}
	return &a.client, nil
}

// askTimeout is the maximum time for GitHub to identify the token's account when its user looks at it.
const askTimeout = 10 * time.Second

// Connection describes the token's account to the token's user. It returns nil for any other user. It asks GitHub each
// time. The status is "broken" if GitHub does not accept the token, and "unknown" if GitHub cannot be asked.
func (a *Accounts) Connection(ctx context.Context, uid string) *linking.Connection {
	if uid != a.cfg.UID {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	c := &linking.Connection{Provider: Provider.ID, Status: "linked", Scopes: []string{}, Source: Setting}
	switch who, err := whose(ctx, &a.plain, a.cfg.APIURL, a.cfg.Token); {
	case errors.Is(err, linking.ErrRefused):
		c.Status = "broken"
	case err != nil:
		c.Status = "unknown"
	default:
		c.Login = who.Login
	}
	return c
}

// Reads returns the paths of the documents that describe the user's account. There are none for the token's user.
func (a *Accounts) Reads(uid string) []string {
	if uid != a.cfg.UID {
		return a.Linked.Reads(uid)
	}
	return nil
}

func refused() *fault.Error {
	return fault.New(fault.Auth, fault.CodeReauth, "GitHub does not accept GITHUB_TOKEN. Set another one, or unset it "+
		"and link an account.")
}

// noAccounts is Linked for a program without a GitHub App.
type noAccounts struct{}

func (noAccounts) Place(context.Context, string, []string) (tool.Place, error) {
	return tool.Place{}, unlinkable()
}

func (noAccounts) Client(context.Context, string, tool.Place) (*http.Client, error) {
	return nil, unlinkable()
}

func (noAccounts) Reads(string) []string { return nil }

func unlinkable() *fault.Error {
	return fault.New(fault.Auth, fault.CodeForbidden, "Here GITHUB_TOKEN serves only the user of GITHUB_TOKEN_USER. "+
		"Others cannot link an account at GitHub, because no GitHub App is configured (GITHUB_CLIENT_ID).")
}

// bearer adds a token to each request.
type bearer struct {
	token string
	base  http.RoundTripper
}

// RoundTrip sends the request with the token. It does not modify r, as [http.RoundTripper] requires.
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	out := r.Clone(r.Context())
	out.Header.Set("Authorization", "Bearer "+b.token)
	resp, err := b.base.RoundTrip(out)
	if err == nil && resp.StatusCode == http.StatusUnauthorized {
		return nil, errors.Join(refused(), resp.Body.Close())
	}
	return resp, err
}
