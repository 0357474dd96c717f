package google

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"google.golang.org/api/option"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/tools/internal/provider"
)

// Client makes the requests of the tools of one service.
type Client struct {
	Timeout   time.Duration // of one call
	MaxAnswer int64         // bytes of one answer
	accounts  provider.Accounts
	endpoint  string
}

// NewClient returns a client for the service at the endpoint; empty means Google's endpoint. A zero timeout means the
// provider's default.
func NewClient(accounts provider.Accounts, endpoint string, timeout time.Duration) Client {
	return Client{cmp.Or(timeout, provider.Timeout), provider.MaxAnswer, accounts, endpoint}
}

// Place returns the account in which a call with the scopes acts.
func (c Client) Place(scopes []string) func(context.Context, tool.Scope) (tool.Place, error) {
	return func(ctx context.Context, in tool.Scope) (tool.Place, error) {
		return c.accounts.Place(ctx, in.UID, scopes)
	}
}

// Reads returns the paths of the documents that identify the account.
func (c Client) Reads(in tool.Scope) []string { return c.accounts.Reads(in.UID) }

// Options returns the options for Google's own client, so that it acts as the call's user in the account of the call.
func (c Client) Options(ctx context.Context, call tool.Call) ([]option.ClientOption, error) {
	client, err := provider.Client(ctx, c.accounts, call, Name, c.MaxAnswer)
	if err != nil {
		return nil, err
	}
	if c.endpoint == "" {
		return []option.ClientOption{option.WithHTTPClient(client)}, nil
	}
	if at, err := url.Parse(c.endpoint); err == nil && at.Path != "/" {
		client.Transport = below{client.Transport, strings.TrimSuffix(at.Path, "/")}
	}
	return []option.ClientOption{option.WithHTTPClient(client), option.WithEndpoint(c.endpoint)}, nil
}

// below sends uploads to an endpoint with a path. Google's client sends them to the root of the endpoint's host.
type below struct {
	http.RoundTripper
	path string
}

// RoundTrip implements [http.RoundTripper].
func (b below) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasPrefix(r.URL.Path, "/upload/") {
		r = r.Clone(r.Context())
		r.URL.Path, r.URL.RawPath = b.path+r.URL.Path, ""
	}
	return b.RoundTripper.RoundTrip(r)
}
