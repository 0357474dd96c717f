package api

import (
	"context"
	"net/http"
	"strings"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/telemetry/obs"
)

// Sockets carries terminals over WebSockets (shared/terminal/attach).
type Sockets interface {
	// Serve upgrades the request and carries the terminal until the socket ends. enter returns whose token its first
	// message has, if they may attach; leave is called at the end.
	Serve(w http.ResponseWriter, r *http.Request, terminalID string,
		enter func(ctx context.Context, token string) (uid string, leave func(), err error))
}

// getSocket attaches a person to their terminal. Browsers send no header with a WebSocket that scripts may set, so the
// token comes in the first message; guard has checked the origin. Whether the terminal is there is told to its user
// only.
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
		return nil, fault.New(fault.Validation, fault.CodeUpgrade, "This path takes a WebSocket.")
	}
	if r.api.Sockets == nil {
		return nil, errNoSuchPath()
	}
	r.api.Sockets.Serve(r.w, r.Request, id, r.enter)
	return nil, nil
}

// enter returns the user whose token it is, unless they are disabled or hold as many sockets and streams open as they
// may.
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
