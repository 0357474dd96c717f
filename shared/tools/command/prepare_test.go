package command_test

import (
	"context"
	"net"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/terminal/remote"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
	"github.com/countersign-run/countersign/shared/testkit/sshd"
	"github.com/countersign-run/countersign/shared/tools/command"
)

// cutHosts cuts the connections to a host as soon as the host sends something.
type cutHosts struct {
	*remote.Pool
	host *sshd.Server
}

func (c cutHosts) Get(ctx context.Context, h *terminal.Host) (supervisor.Conn, func(), error) {
	conn, release, err := c.Pool.Get(ctx, h, func(context.Context) ([]byte, error) { return c.host.Key, nil })
	return cutConn{conn, c.host}, release, err
}

type cutConn struct {
	supervisor.Conn
	host *sshd.Server
}

func (c cutConn) Exec(ctx context.Context, x supervisor.Exec) (int, error) {
	x.Stdout = c
	return c.Conn.Exec(ctx, x)
}

func (c cutConn) Write(p []byte) (int, error) {
	c.host.Cut()
	return len(p), nil
}

// TestPrepareConnectionLost loses the connection while the host is asked for its facts. Nothing of the command was
// sent.
func TestPrepareConnectionLost(t *testing.T) {
	s := sshd.Start(t, sshd.Options{})
	w := newWorld(t, func(h *terminal.Host, _ *terminal.Terminal) {
		*h = *s.Host()
		h.ID = hostID
	})
	pool := remote.NewPool(&net.Dialer{}, remote.Times{})
	t.Cleanup(func() { _ = pool.Close() }) // it never fails
	its := command.New(command.Options{Store: w.st, Hosts: cutHosts{pool, s}})[command.Run]
	args, err := its.Normalize([]byte(`{"command":"touch x","reasoning":"r"}`))
	if err != nil {
		t.Fatal(err)
	}
	_, err = its.Prepare(t.Context(), tool.Call{UID: "ana", Terminal: terminalID, ActionID: "a", Args: args})
	if !remote.Unreachable(err) || !tool.IsTransient(err) {
		t.Errorf("prepared with %v", err)
	}
}
