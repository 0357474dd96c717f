package app

import (
	"context"
	"net/http"

	"github.com/countersign-run/countersign/shared/accounts/linking"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store"
)

// Accounts are users' linked accounts at one provider. Place returns the account for a user's calls, if its scopes
// suffice. Client returns an HTTP client that acts as the user in that account and in no other.
type Accounts interface {
	Place(ctx context.Context, uid string, scopes []string) (tool.Place, error)
	Client(ctx context.Context, uid string, in tool.Place) (*http.Client, error)
	// Reads returns the paths of the documents that Place and Client read.
	Reads(uid string) []string
}

// readOnlyAccounts finds linked accounts but cannot act in them. Functions that never act need no OAuth client.
type readOnlyAccounts struct {
	store    store.Store
	provider linking.Provider
}

func (o readOnlyAccounts) Place(ctx context.Context, uid string, scopes []string) (tool.Place, error) {
	return o.provider.Place(ctx, o.store, uid, scopes)
}

func (o readOnlyAccounts) Reads(uid string) []string { return o.provider.Reads(uid) }

func (o readOnlyAccounts) Client(context.Context, string, tool.Place) (*http.Client, error) {
	return nil, fault.New(fault.Auth, fault.CodeReauth,
		"%s accounts cannot be linked here: no OAuth client is configured.", o.provider.Name)
}
