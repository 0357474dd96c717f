// Package google is what the tools for Google's services share: a client that sends a request once and to one place,
// and the reading of a failed call. What matters about a failure is what it proves: that nothing happened, or nothing.
package google

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/tool"
)

// Accounts are the linked accounts of all users. Place says which account a user's calls act in, if it may be used with the
// scopes. Client returns the HTTP client that acts there as the user: it adds the access token and refreshes it. Errors are
// *fault.Error: of class AuthError where the user has to link the account (again), PolicyError stale_view where another account
// is linked by now.
type Accounts interface {
	Place(ctx context.Context, uid string, scopes []string) (tool.Place, error)
	Client(ctx context.Context, uid string, in tool.Place) (*http.Client, error)
}

// Timeout is how long one call to a provider may take when the options say nothing else.
const Timeout = 20 * time.Second

// maxAnswer bounds what is read of one answer. The largest that is asked for is a draft of two bodies in base64.
const maxAnswer = 4 << 20

// Client returns the client of the call's user in the call's place, made safe for calls that must not be repeated: it follows no redirect, since net/http
// would send a POST again to wherever the answer points, with the user's token; and it reads no endless answer. net/http
// itself repeats a POST only where nothing was written, or where the request has an Idempotency-Key: never set that
// header towards a provider that ignores it (net/http, Request.isReplayable). An error says that nothing was sent.
func Client(ctx context.Context, a Accounts, c tool.Call) (*http.Client, error) {
	given, err := a.Client(ctx, c.UID, c.Place)
	if err != nil {
		var e *fault.Error
		if errors.As(err, &e) {
			return nil, err
		}
		// The cause is kept as text: an ended context inside it would make the error ambiguous.
		return nil, tool.Transient(fault.New(fault.Tool, "provider_unavailable", "Your Google account could not be reached.").Because(fmt.Errorf("client: %v", err)))
	}
	once := *given
	once.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	once.Transport = bounded{once.Transport}
	return &once, nil
}

// bounded cuts an answer that is longer than any that a tool asks for.
type bounded struct{ next http.RoundTripper }

func (b bounded) RoundTrip(r *http.Request) (*http.Response, error) {
	next := b.next
	if next == nil {
		next = http.DefaultTransport
	}
	res, err := next.RoundTrip(r)
	if err == nil {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, maxAnswer), res.Body}
	}
	return res, err
}
