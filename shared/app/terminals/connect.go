package terminals

import (
	"context"

	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/store"
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
	b.Hosts = connections{pool, v, b.Store}
	b.Closes(b.Hosts)
	return nil
}

// connections connects to users' hosts. It opens the secret of a host, and of each host on the way, when it connects.
type connections struct {
	pool  *remote.Pool
	vault terminal.Vault
	store store.Store
}

// Get implements [command.Hosts].
func (c connections) Get(ctx context.Context, h *terminal.Host) (supervisor.Conn, func(), error) {
	via, err := c.via(ctx, h.UID, h.Jump)
	if err != nil {
		return nil, nil, err
	}
	return c.pool.Get(ctx, h, c.secret(h), via...)
}

// Scan implements [hosts.Remote].
func (c connections) Scan(ctx context.Context, uid, jump, address string, port int) ([]terminal.HostKey, error) {
	via, err := c.via(ctx, uid, jump)
	if err != nil {
		return nil, err
	}
	return c.pool.Scan(ctx, address, port, via...)
}

// Check implements [hosts.Remote].
func (c connections) Check(ctx context.Context, h terminal.Host) (supervisor.Facts, error) {
	via, err := c.via(ctx, h.UID, h.Jump)
	if err != nil {
		return supervisor.Facts{}, err
	}
	return c.pool.Check(ctx, h, c.secret(&h), via...)
}

// Close closes all connections.
func (c connections) Close() error { return c.pool.Close() }

// via returns the hosts on the way.
func (c connections) via(ctx context.Context, uid, jump string) (via []remote.Hop, err error) {
	hosts, err := terminal.ReadJumps(ctx, c.store, uid, jump)
	for i := range hosts {
		via = append(via, remote.Hop{Host: &hosts[i], Open: c.secret(&hosts[i])})
	}
	return via, err
}

func (c connections) secret(h *terminal.Host) remote.Secret {
	return func(ctx context.Context) ([]byte, error) { return c.vault.Open(ctx, *h) }
}
