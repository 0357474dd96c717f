package forge

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync"

	"github.com/countersign-run/countersign/scripts/prove/proof"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/sshd"
)

// machine is a host of the users, with a second address that belongs to the attacker. All traffic to the host through
// relay passes through the attacker.
type machine struct {
	*sshd.Server
	relay string

	owner proof.Owner
	via   net.Listener
	done  sync.WaitGroup
}

// newMachine starts a host. It returns nil if OpenSSH's server is not installed.
func newMachine(ctx context.Context, dir string) (*machine, error) {
	m := &machine{owner: proof.Owner{Dir: dir}}
	err := proof.Attempt(func() { m.Server = sshd.Start(&m.owner, sshd.Options{}) })
	if errors.Is(err, proof.ErrAbsent) {
		return nil, nil
	}
	if err == nil {
		m.via, err = new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	}
	if err != nil {
		m.owner.Cleaned()
		return nil, err
	}
	m.relay = m.via.Addr().String()
	m.done.Go(m.serve)
	return m, nil
}

func (m *machine) serve() {
	for {
		in, err := m.via.Accept()
		if err != nil {
			return
		}
		m.done.Go(func() { m.pass(in) })
	}
}

// pass copies a connection to the host and back, until either side ends it.
func (m *machine) pass(in net.Conn) {
	defer in.Close()
	out, err := new(net.Dialer).Dial("tcp", m.Addr)
	if err != nil {
		return
	}
	defer out.Close()
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{in, out}, {out, in}} {
		both.Go(func() {
			_, _ = io.Copy(way[0], way[1]) // either end may close the connection
			_ = way[0].Close()
			_ = way[1].Close()
		})
	}
	both.Wait()
}

func (m *machine) close() {
	m.owner.Cleaned() // this also closes the relayed connections
	_ = m.via.Close()
	m.done.Wait()
}

// login returns how the user logs in.
func (m *machine) login() testkit.Login {
	return testkit.Login{Addr: m.Addr, User: m.User, Key: m.Key, HostKeys: m.HostKeys()}
}

// relayed returns the port of the attacker's address.
func (m *machine) relayed() string {
	_, port, _ := strings.Cut(m.relay, ":")
	return port
}
