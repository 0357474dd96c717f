package google

import (
	"cmp"
	"context"
	"time"

	"google.golang.org/api/option"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/tools/internal/provider"
)

// Client makes the requests of the tools of one service.
type Client struct {
	Timeout  time.Duration // of one call
	accounts provider.Accounts
	endpoint string
}

// NewClient returns a client for the service at the endpoint; empty means Google's endpoint. A zero timeout means the
// provider's default.
func NewClient(accounts provider.Accounts, endpoint string, timeout time.Duration) Client {
	return Client{cmp.Or(timeout, provider.Timeout), accounts, endpoint}
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
	client, err := provider.Client(ctx, c.accounts, call, Name)
	if err != nil {
		return nil, err
	}
	opts := []option.ClientOption{option.WithHTTPClient(client)}
	if c.endpoint != "" {
		opts = append(opts, option.WithEndpoint(c.endpoint))
	}
	return opts, nil
}
