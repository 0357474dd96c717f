package web

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/outbound"
)

// The limits of a discovery.
const (
	discoveryTime = 5 * time.Second
	discoverySize = 64 << 10
	discoveryKept = time.Hour
	failureKept   = 5 * time.Second // an unreachable issuer delays one request, not all
	mostPaused    = 5 * time.Minute // maximum time for which an issuer can ask not to be asked
)

// google issues ID tokens to public web clients at its authorization endpoint only: its token endpoint requires a
// secret of web clients (https://developers.google.com/identity/openid-connect/openid-connect).
const google = "https://accounts.google.com"

// endpoints has the URLs for sign-in, and the flow that gives a browser its ID token: "code" is the authorization code
// with PKCE; "id_token" is the token itself, in the fragment of the answer.
type endpoints struct {
	Flow          string `json:"flow"`
	Authorization string `json:"authorizationEndpoint"`
	Token         string `json:"tokenEndpoint,omitempty"`
}

// issuer finds the endpoints with OpenID Connect Discovery, and caches them for an hour.
type issuer struct {
	url    string
	client *http.Client
	now    func() time.Time

	mu    sync.Mutex
	known *endpoints
	err   error // why the endpoints are unknown
	until time.Time
}

func newIssuer(address string, client *http.Client, now func() time.Time) *issuer {
	if !strings.Contains(address, "://") { // Google's short spelling
		address = "https://" + address
	}
	if client == nil {
		client = &http.Client{Timeout: discoveryTime}
	}
	if now == nil {
		now = time.Now
	}
	return &issuer{url: address, client: outbound.PatientFor(client, now, mostPaused), now: now}
}

func (i *issuer) endpoints(ctx context.Context) (*endpoints, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.now().Before(i.until) {
		return i.known, i.err
	}
	i.known, i.err = i.discover(context.WithoutCancel(ctx)) // other requests wait for it, too
	kept := discoveryKept
	if i.err != nil {
		kept = failureKept
	}
	i.until = i.now().Add(kept)
	return i.known, i.err
}

func (i *issuer) discover(ctx context.Context) (*endpoints, error) {
	ctx, cancel := context.WithTimeout(ctx, discoveryTime)
	defer cancel()
	var d struct {
		Issuer        string   `json:"issuer"`
		Authorization string   `json:"authorization_endpoint"`
		Token         string   `json:"token_endpoint"`
		Challenges    []string `json:"code_challenge_methods_supported"`
		Types         []string `json:"response_types_supported"`
	}
	if err := i.read(ctx, &d); err != nil {
		return nil, fault.Unavailable("The sign-in service is temporarily unavailable. Please try again.",
			err).After(failureKept)
	}
	e := &endpoints{Authorization: d.Authorization}
	switch {
	case strings.TrimSuffix(d.Issuer, "/") != strings.TrimSuffix(i.url, "/"):
		return nil, unusable("it names another issuer")
	case !i.secure(d.Authorization):
		return nil, unusable("it has no page to sign in at")
	case i.url != google && slices.Contains(d.Challenges, "S256") && i.secure(d.Token):
		e.Flow, e.Token = "code", d.Token
	case slices.Contains(d.Types, "id_token"):
		e.Flow = "id_token"
	default:
		return nil, unusable("it offers public clients neither an authorization code with PKCE (S256) nor an ID token")
	}
	return e, nil
}

func unusable(why string) error {
	return fault.New(fault.Auth, "sign_in_unusable", "Users cannot sign in with the configured issuer: %s.", why)
}

// secure accepts https, and http if the issuer itself uses http on this machine.
func (i *issuer) secure(address string) bool {
	u, err := url.Parse(address)
	return err == nil && u.Host != "" &&
		(u.Scheme == "https" || u.Scheme == "http" && strings.HasPrefix(i.url, "http://"))
}

func (i *issuer) read(ctx context.Context, v any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet,
		strings.TrimSuffix(i.url, "/")+"/.well-known/openid-configuration", nil)
	if err != nil {
		return err
	}
	res, err := i.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("the discovery returned %s", res.Status)
	}
	return json.NewDecoder(io.LimitReader(res.Body, discoverySize)).Decode(v)
}
