package terminals

import (
	"context"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/keeper"
	"github.com/countersign-run/countersign/shared/remote"
	"github.com/countersign-run/countersign/shared/terminal"
)

// Commands runs the commands of agents on users' hosts.
var Commands = app.Part{Needs: config.Hosts, Link: func(c *app.Clients) { c.Hosts = connect }}

func connect(ctx context.Context, cfg config.Config) (app.Hosts, error) {
	if !cfg.Terminal {
		return nil, nil
	}
	v, err := vault(ctx, cfg)
	if err != nil {
		return nil, err
	}
	pool, err := newPool(cfg)
	if err != nil {
		return nil, err
	}
	return connections{pool, v}, nil
}

// connections are those to hosts, whose secrets are opened where one is made.
type connections struct {
	*remote.Pool
	vault terminal.Vault
}

// Get implements [command.Hosts].
func (c connections) Get(ctx context.Context, h *terminal.Host) (keeper.Conn, func(), error) {
	return c.Pool.Get(ctx, h, func(ctx context.Context) ([]byte, error) { return c.vault.Open(ctx, *h) })
}
