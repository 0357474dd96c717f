// Package terminals has the parts that connect to users' hosts, store and check the hosts, and serve terminals.
package terminals

import (
	"context"
	"fmt"

	"github.com/countersign-run/countersign/shared/accounts/tokenkey"
	"github.com/countersign-run/countersign/shared/app"
	"github.com/countersign-run/countersign/shared/base/netguard"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/terminal/hosts"
	"github.com/countersign-run/countersign/shared/terminal/remote"
)

// Hosts stores users' hosts and terminals, and checks hosts.
var Hosts = app.Part{Name: "terminals", Uses: []string{Connect.Name}, Serve: serveHosts}

func serveHosts(b *app.Builder) error {
	c := hosts.Config{Store: b.Store, Off: true, AuditDays: b.Config.AuditDays, Now: b.Now,
		EndOverdue: b.API.Loop.EndOverdue}
	if b.Hosts == nil {
		b.API.Hosts = hosts.New(c)
		return nil
	}
	v, err := vault(context.Background(), b.Config)
	if err != nil {
		return err
	}
	c.Off, c.Vault, c.Remote = false, v, b.Hosts
	b.API.Hosts = hosts.New(c)
	return nil
}

// sshPort is the only port that is dialled at public addresses, unless TERMINAL_HOSTS permits more.
const sshPort = 22

// newPool returns a pool of connections to the permitted hosts.
func newPool(cfg config.Config) (*remote.Pool, error) {
	open, err := netguard.ParseAll(cfg.TerminalHosts)
	if err != nil {
		return nil, fmt.Errorf("TERMINAL_HOSTS: %w", err)
	}
	guard := netguard.New(netguard.Options{Ports: []int{sshPort}, Open: open, Deployed: cfg.OnCloudRun})
	return remote.NewPool(guard, remote.Times{}), nil
}

// vault opens the encryption of the hosts' secrets.
func vault(ctx context.Context, cfg config.Config) (terminal.Vault, error) {
	key, err := tokenkey.Open(ctx, tokenkey.Config{KMSKey: cfg.TokenKMSKey, Keyset: cfg.TokenKey.Reveal(),
		Dir: cfg.DataDir})
	if err != nil {
		return terminal.Vault{}, fmt.Errorf("the key that encrypts the secrets of hosts: %w", err)
	}
	return terminal.Vault{AEAD: key}, nil
}
