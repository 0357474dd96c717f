package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/telemetry/obs"
)

// Sockets serves terminals over WebSockets (shared/terminal/attach).
type Sockets interface {
	// Serve upgrades the request and serves the terminal until the socket closes. enter checks the token in the first
	// message and returns its user; leave is called when the socket closes.
	Serve(w http.ResponseWriter, r *http.Request, terminalID string,
		enter func(ctx context.Context, token string) (uid string, leave func(), err error))
}

// getSocket attaches a user to their terminal. Browsers do not let scripts set headers on a WebSocket, so the token
// comes in the first message. guard has already checked the origin. Only the terminal's user learns whether it exists.
func getSocket(r *request) (any, error) {
	leave, err := r.api.admit()
	if err != nil {
		return nil, err
	}
	defer leave()
	id, err := r.id("terminalId")
	if err != nil {
		return nil, err
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		r.w.Header().Set("Upgrade", "websocket")
		return nil, fault.New(fault.Validation, fault.CodeUpgrade, "This path requires a WebSocket.")
	}
	if r.api.Sockets == nil {
		return nil, errNoSuchPath()
	}
	r.api.Sockets.Serve(r.w, r.Request, id, r.enter)
	return nil, nil
}

// enter returns the user of the token. It refuses a disabled user, and one who holds the maximum number of sockets and
// streams open.
func (r *request) enter(ctx context.Context, token string) (uid string, leave func(), err error) {
	id, err := r.api.Users.Token(ctx, token)
	if err != nil {
		return "", nil, err
	}
	obs.SetUser(r.Context(), id.UID)
	if err := r.api.Records.CheckReader(ctx, id.UID); err != nil {
		return "", nil, err
	}
	leave, err = r.api.hold(id.UID)
	return id.UID, leave, err
}
