package gmail

import (
	"cmp"
	"context"
	"time"

	gmailapi "google.golang.org/api/gmail/v1"
	"google.golang.org/api/option"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/tool"
	"github.com/countersign-run/countersign/shared/tools/internal/google"
	"github.com/countersign-run/countersign/shared/tools/internal/provider"
)

// client is what both tools act with.
type client struct {
	accounts provider.Accounts
	endpoint string
	timeout  time.Duration
}

func newClient(accounts provider.Accounts, o Options) client {
	return client{accounts, o.Endpoint, cmp.Or(o.Timeout, provider.Timeout)}
}

// placeWith returns what tells the account in which a call acts that needs the scopes.
func (c client) placeWith(scopes []string) func(context.Context, tool.Scope) (tool.Place, error) {
	return func(ctx context.Context, in tool.Scope) (tool.Place, error) {
		return c.accounts.Place(ctx, in.UID, scopes)
	}
}

func (c client) reads(in tool.Scope) []string { return c.accounts.Reads(in.UID) }

// service returns Google's client, acting as the call's user in the account for which the call was judged.
func (c client) service(ctx context.Context, call tool.Call) (*gmailapi.Service, error) {
	client, err := provider.Client(ctx, c.accounts, call, google.Name)
	if err != nil {
		return nil, err
	}
	opts := []option.ClientOption{option.WithHTTPClient(client)}
	if c.endpoint != "" {
		opts = append(opts, option.WithEndpoint(c.endpoint))
	}
	svc, err := gmailapi.NewService(ctx, opts...)
	if err != nil {
		return nil, fault.New(fault.Tool, fault.CodeInternal, "Gmail's client could not be made.").Because(err)
	}
	return svc, nil
}
