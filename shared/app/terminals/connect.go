package terminals

import (
	"context"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/terminal/remote"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
)

// Connect opens connections to users' hosts, on which agents' commands run.
var Connect = app.Part{Name: "hosts", Needs: config.Hosts, Open: connect}

func connect(ctx context.Context, b *app.Builder) error {
	if !b.Config.Terminal {
		return nil
	}
	v, err := vault(ctx, b.Config)
	if err != nil {
		return err
	}
	pool, err := newPool(b.Config)
	if err != nil {
		return err
	}
	b.Hosts = connections{pool, v}
	b.Closes(b.Hosts)
	return nil
}

// connections opens a host's secret when it connects to the host.
type connections struct {
	*remote.Pool
	vault terminal.Vault
}

// Get implements [command.Hosts].
func (c connections) Get(ctx context.Context, h *terminal.Host) (supervisor.Conn, func(), error) {
	return c.Pool.Get(ctx, h, func(ctx context.Context) ([]byte, error) { return c.vault.Open(ctx, *h) })
}
