package terminals

import (
	"log/slog"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/attach"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/loop"
	"github.com/countersign-run/countersign/shared/store"
)

// Attach carries people's terminals over WebSockets.
var Attach = app.Part{Needs: config.Hosts, Link: func(c *app.Clients) { c.Hosts, c.Sockets = connect, sockets }}

func sockets(st store.Store, l *loop.Loop, hosts app.Hosts, log *slog.Logger) api.Sockets {
	return &attach.Sockets{Store: st, Hosts: hosts, Runs: loop.Terminals{Loop: l}, Log: log}
}
