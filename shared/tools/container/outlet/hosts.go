// Package outlet lets a container that has no network reach a few hosts. An unprivileged program in the container is an
// HTTP proxy for the other programs there. It passes their requests as HTTP/2 over its standard input and output to
// this process. This process connects only to listed hosts. The container has no other connection to the outside,
// whatever the engine is and wherever it runs.
package outlet

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
)

// Registries lists the installers whose registry an operator can set.
var Registries = []string{"go", "npm", "pip"}

// Hosts are the hosts that a container can reach.
type Hosts struct {
	// Dial connects to a host; nil: over the network of this process.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	names    []string        // as the operator wrote them
	tunnels  map[string]bool // host:port, for TLS between the container and the host
	plain    map[string]bool // host:port, for HTTP without TLS
	registry map[string]string
}

// Parse reads the hosts. Each one is the name of a host with TLS, with or without a port, or the registry of an
// installer, such as go=https://proxy.example.com or npm=http://mirror.example.com:8080/npm.
func Parse(list []string) (Hosts, error) {
	h := Hosts{names: list, tunnels: map[string]bool{}, plain: map[string]bool{}, registry: map[string]string{}}
	for _, one := range list {
		name, address, named := strings.Cut(one, "=")
		if !named {
			name, address = "", "https://"+one
		}
		u, err := url.Parse(address)
		switch {
		case err != nil || u.Hostname() == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "":
			return Hosts{}, fmt.Errorf("%q: a host, or the address of a registry, is required", one)
		case !named && u.Path != "":
			return Hosts{}, fmt.Errorf("%q: a host without a path is required", one)
		case named && !slices.Contains(Registries, name):
			return Hosts{}, fmt.Errorf("%q: the registry is one of %s", one, strings.Join(Registries, ", "))
		case u.Scheme == "https":
			h.tunnels[address443(u)] = true
		case u.Scheme == "http" && named:
			h.plain[address80(u)] = true
		default:
			return Hosts{}, errors.New("an address begins with https:// or http://")
		}
		if named {
			h.registry[name] = address
		}
	}
	return h, nil
}

func address443(u *url.URL) string { return withPort(u.Host, "443") }
func address80(u *url.URL) string  { return withPort(u.Host, "80") }

func withPort(host, port string) string {
	host = strings.ToLower(host)
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), port)
}

// Names returns the hosts and registries as the operator wrote them.
func (h Hosts) Names() []string { return h.names }

// Registry returns the address of an installer's registry, or "" for the installer's own.
func (h Hosts) Registry(name string) string { return h.registry[name] }
