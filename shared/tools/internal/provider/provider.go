// Package provider is shared by the tools that act in users' linked accounts. It has a client that sends a request once
// and to one host, and it determines what a failed call proves: above all, whether nothing happened.
package provider

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/outbound"
)

// Accounts are the linked accounts of all users. Place returns the account in which a user's calls act, if it may be
// used with the scopes. Client returns the HTTP client that acts there as the user: it adds the access token and
// refreshes it. Errors are *fault.Error: of class AuthError if the user has to link the account (again), PolicyError
// stale_view if another account is linked by now. Reads returns the paths of the documents that identify the account,
// or nil.
type Accounts interface {
	Place(ctx context.Context, uid string, scopes []string) (tool.Place, error)
	Client(ctx context.Context, uid string, in tool.Place) (*http.Client, error)
	Reads(uid string) []string
}

// Timeout is the default time limit of one call to a provider.
const Timeout = 20 * time.Second

// MaxAnswer limits the size of one answer. The largest expected ones are a draft of two bodies in base64, and the files
// of a repository. E-mails with files have a limit of their own.
const MaxAnswer = 4 << 20

// Client returns the client of the call's user in the call's place, an account of the provider of this name, made safe
// for calls that must not be repeated. It follows no redirect, since net/http would send a POST again to the new
// address, with the user's token; and it reads at most most bytes of an answer. net/http itself repeats a POST only if
// nothing was written, or if the request has an Idempotency-Key: never set that header for a provider that ignores it
// (net/http, Request.isReplayable). An error means that nothing was sent.
func Client(ctx context.Context, a Accounts, c tool.Call, name string, most int64) (*http.Client, error) {
	given, err := a.Client(ctx, c.UID, c.Place)
	if err != nil {
		var e *fault.Error
		if errors.As(err, &e) {
			return nil, err
		}
		// The cause is kept as text: a wrapped context error would make the error ambiguous.
		return nil, tool.Transient(fault.New(fault.Tool, "provider_unavailable",
			"Your %s account could not be reached.", name).Because(fmt.Errorf("client: %v", err)))
	}
	once := *given
	once.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	once.Transport = outbound.Limit(once.Transport, most)
	return &once, nil
}
