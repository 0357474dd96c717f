package linking

import (
	"context"
	"io"
	"net/http"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/outbound"
)

// Client returns an HTTP client that acts as the user, with the linked account that Place returned and no other. It
// asks the provider for an access token when there is none in memory, so that most errors are returned here, before
// anything is done:
//
//   - AuthError reauth_required: no account is linked, or the provider refuses the link (invalid_grant), which is then
//     marked broken
//   - PolicyError stale_view: another account is linked by now
//   - ToolExecutionError, marked [tool.Transient]: the provider's token endpoint, the store or the key service failed
//
// A request that the API answers with 401 is sent once more with a new token, if its body can be read again. The client
// follows no redirect, because the token is for the host of the request.
func (a *Accounts) Client(ctx context.Context, uid string, in tool.Place) (*http.Client, error) {
	l, err := a.cfg.usable(ctx, a.store, uid, nil)
	if err != nil {
		return nil, err
	}
	if err := tool.SamePlace(in, l.place()); err != nil {
		return nil, err
	}
	if _, err := a.access(ctx, l, "", true); err != nil {
		return nil, err
	}
	return &http.Client{
		Transport:     &transport{accounts: a, link: l},
		Timeout:       a.cfg.HTTPClient.Timeout,
		CheckRedirect: a.cfg.HTTPClient.CheckRedirect,
	}, nil
}

// transport adds one user's access token to each request.
type transport struct {
	accounts *Accounts
	link     link
}

// RoundTrip sends the request as the user. It does not modify r, as [http.RoundTripper] demands.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	token, err := t.accounts.access(r.Context(), t.link, "", false)
	if err != nil {
		closeBody(r.Body)
		return nil, err
	}
	resp, err := t.send(r, r.Body, token)
	if err != nil || resp.StatusCode != http.StatusUnauthorized {
		return resp, err
	}
	body, ok := again(r)
	if !ok {
		return resp, nil
	}
	fresh, err := t.accounts.access(r.Context(), t.link, token, false)
	if err != nil {
		closeBody(body)
		closeBody(resp.Body)
		return nil, err
	}
	_, _ = io.CopyN(io.Discard, resp.Body, 64<<10) // so that the connection can be reused
	closeBody(resp.Body)
	return t.send(r, body, fresh)
}

func (t *transport) send(r *http.Request, body io.ReadCloser, token string) (*http.Response, error) {
	out := r.Clone(r.Context())
	out.Body = body
	out.Header.Set("Authorization", "Bearer "+token)
	base := t.accounts.cfg.HTTPClient.Transport
	if base == nil {
		base = outbound.Default()
	}
	return base.RoundTrip(out)
}

// again returns the request's body for a second reading, and whether that is possible.
func again(r *http.Request) (io.ReadCloser, bool) {
	if r.Body == nil || r.Body == http.NoBody {
		return r.Body, true
	}
	if r.GetBody == nil {
		return nil, false
	}
	body, err := r.GetBody()
	return body, err == nil
}

// closeBody closes a body that will not be read. It ignores the error, which has no consequence.
func closeBody(body io.Closer) {
	if body != nil {
		_ = body.Close()
	}
}
