package google

import (
	"cmp"
	"context"
	"time"

	"google.golang.org/api/option"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/tools/internal/provider"
)

// Client is what the tools of one service act with.
type Client struct {
	Timeout  time.Duration // of one call
	accounts provider.Accounts
	endpoint string
}

// NewClient returns a client of the service at the endpoint, or of Google's where it is empty. No timeout means the
// provider's.
func NewClient(accounts provider.Accounts, endpoint string, timeout time.Duration) Client {
	return Client{cmp.Or(timeout, provider.Timeout), accounts, endpoint}
}

// Place returns what tells the account in which a call acts that needs the scopes.
func (c Client) Place(scopes []string) func(context.Context, tool.Scope) (tool.Place, error) {
	return func(ctx context.Context, in tool.Scope) (tool.Place, error) {
		return c.accounts.Place(ctx, in.UID, scopes)
	}
}

// Reads returns the paths of the documents that identify the account.
func (c Client) Reads(in tool.Scope) []string { return c.accounts.Reads(in.UID) }

// Options returns what Google's own client is made with, so that it acts as the call's user in the account for which
// the call was judged.
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
