// Package terminalattach is the function that serves a user's terminal over a WebSocket, for up to an hour: GET
// /api/agent/terminals/{terminalId}/socket. The first message is the token. Keys and output follow.
package terminalattach

import (
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/app/terminals"
)

func init() {
	functions.HTTP("terminal-attach", app.Serve(api.TerminalAttach, app.Users, terminals.Connect, terminals.Attach))
}
