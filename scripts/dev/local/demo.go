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

// demo is the demo host, and where it listens: on loopback, at the port of the last time.
type demo struct {
	*demohost.Host
	port   int
	ended  chan error
	giving sync.Mutex // one sign-in after the other, so that each user gets it once
}

const loopback = "127.0.0.1"

// startDemo starts the demo host, unless the operator has switched terminals off. It ends with the server.
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

// listenAgain listens where it did before, by a file, or elsewhere if that is taken.
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

// reachable lets commands reach the demo host, in addition to TERMINAL_HOSTS.
func (d *demo) reachable(cfg *config.Config) {
	if d != nil {
		cfg.TerminalHosts = append(cfg.TerminalHosts, net.JoinHostPort(loopback, strconv.Itoa(d.port)))
	}
}

// give adds the demo host to those of a user who signs in, as any host is added, if it is not there. Where that fails
// the sign-in still succeeds: the user finds no host, and may add one.
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
		default: // the port was taken: its open pages are unreachable
			err = errors.Join(err, hosts.Delete(ctx, uid, h.ID))
		}
	}
	if err == nil {
		err = d.add(ctx, s, uid)
	}
	if err != nil {
		s.app.Log.WarnContext(ctx, "the demo host could not be added at the sign-in", "error", err)
	}
}

const demoName = "demo"

// add adds the host with a key pair of its user's own, and lets that log in.
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

// part describes the host, for the person who starts the server.
func (d *demo) part() string {
	if d == nil {
		return "none: terminals are off"
	}
	return fmt.Sprintf("demo host at %s:%d, pretended in this process; users may add public ones, and private ones "+
		"that TERMINAL_HOSTS opens", loopback, d.port)
}
