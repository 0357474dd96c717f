package terminals

import (
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/engine/loop"
	"github.com/countersign-run/countersign/shared/terminal/attach"
)

// Attach serves users' terminals over WebSockets.
var Attach = app.Part{Name: "attach", Uses: []string{Connect.Name}, Serve: serveSockets}

func serveSockets(b *app.Builder) error {
	if b.Hosts != nil {
		b.API.Sockets = &attach.Sockets{Store: b.Store, Hosts: b.Hosts, Runs: loop.Terminals{Loop: b.API.Loop},
			Log: b.Log}
	}
	return nil
}
