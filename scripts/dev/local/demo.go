package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/countersign-run/countersign/scripts/dev/demohost"
	"github.com/countersign-run/countersign/shared/config"
	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/terminal/remote"
)

// demo is the demo host and its address: loopback, and the port of the previous start if it is free.
type demo struct {
	*demohost.Host
	port   int
	ended  chan error
	giving sync.Mutex // one sign-in at a time, so each user gets the host once
}

const loopback = "127.0.0.1"

// startDemo starts the demo host, unless terminals are off. The host stops with the server.
func (s *server) startDemo(dir string) error {
	if s.env.get("TERMINAL") != "on" {
		return nil
	}
	dir = filepath.Join(dir, "demo-host")
	h, err := demohost.Open(demohost.Options{Dir: dir})
	if err != nil {
		return err
	}
	ln, port, err := listenAgain(filepath.Join(dir, "port"))
	if err != nil {
		return errors.Join(err, h.Close())
	}
	s.demo = &demo{Host: h, port: port, ended: make(chan error, 1)}
	go func() { s.demo.ended <- h.Serve(ln) }()
	s.closers = append(s.closers, func() error { return errors.Join(h.Close(), <-s.demo.ended) })
	return nil
}

// listenAgain listens on the port stored in a file, or on another port if that one is taken.
func listenAgain(file string) (net.Listener, int, error) {
	var lc net.ListenConfig
	before, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, 0, err
	}
	ln, err := lc.Listen(context.Background(), "tcp", net.JoinHostPort(loopback, strings.TrimSpace(string(before))))
	if err != nil {
		if ln, err = lc.Listen(context.Background(), "tcp", net.JoinHostPort(loopback, "0")); err != nil {
			return nil, 0, err
		}
	}
	port := ln.Addr().(*net.TCPAddr).Port
	if err := os.WriteFile(file, []byte(strconv.Itoa(port)), 0o600); err != nil {
		return nil, 0, errors.Join(err, ln.Close())
	}
	return ln, port, nil
}

// reachable lets commands connect to the demo host, in addition to TERMINAL_HOSTS.
func (d *demo) reachable(cfg *config.Config) {
	if d != nil {
		cfg.TerminalHosts = append(cfg.TerminalHosts, net.JoinHostPort(loopback, strconv.Itoa(d.port)))
	}
}

// give adds the demo host to the hosts of a user who signs in, if it is not among them. A failure does not prevent the
// sign-in: the user then has no demo host, and can add hosts.
func (d *demo) give(ctx context.Context, s *server, uid string) {
	hosts := s.app.API.Hosts
	if d == nil || hosts == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	d.giving.Lock()
	defer d.giving.Unlock()
	known, err := hosts.List(ctx, uid)
	for _, h := range known {
		switch {
		case h.Address != loopback || h.Name != demoName || !slices.Equal(h.HostKeys, d.keys()):
		case h.Port == d.port:
			return
		default: // the port has changed: open terminals there are unreachable
			err = errors.Join(err, hosts.Delete(ctx, uid, h.ID))
		}
	}
	if err == nil {
		err = d.add(ctx, s, uid)
	}
	if err != nil {
		s.app.Log.WarnContext(ctx, "adding the demo host at sign-in failed", "error", err)
	}
}

const demoName = "demo"

// add adds the host with a new key pair for its user, and authorizes that key on the demo host.
func (d *demo) add(ctx context.Context, s *server, uid string) error {
	auto := terminal.AutoRunReadOnly
	h, err := s.app.API.Hosts.Add(ctx, uid, terminal.NewHost{Name: demoName, Address: loopback, Port: &d.port,
		Username: demohost.User, Auth: terminal.NewAuth{Kind: terminal.AuthGenerated}, HostKeys: d.keys(),
		AutoRun: &auto, ReadPaths: []string{"/var/log", "/etc/nginx"}})
	if err != nil {
		return err
	}
	return d.Authorize(h.PublicKey)
}

func (d *demo) keys() []terminal.HostKey { return []terminal.HostKey{remote.HostKey(d.Key())} }

// part describes the host, for the greeting.
func (d *demo) part() string {
	if d == nil {
		return "none: terminals are off"
	}
	return fmt.Sprintf("demo host at %s:%d, simulated in this process; users can add public hosts, and private ones "+
		"that TERMINAL_HOSTS permits", loopback, d.port)
}
