package command

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/terminal"
)

// site is the place where a command runs, according to the stored documents.
type site struct {
	terminal.Terminal
	Host terminal.Host
	Via  []terminal.Host // the hosts on the way to Host, in the order of the connection
}

// site reads the terminal and its host.
func (r *runner) site(ctx context.Context, s tool.Scope) (site, error) {
	if s.Terminal == "" {
		return site{}, fault.New(fault.Policy, "no_terminal", "This conversation has no terminal.")
	}
	t, err := terminal.ReadTerminal(ctx, r.Store, s.UID, s.Terminal)
	if fault.Is(err, fault.Auth, fault.CodeNotFound) {
		return site{}, errClosed()
	}
	if err != nil {
		return site{}, err
	}
	h, err := terminal.ReadHost(ctx, r.Store, s.UID, t.HostID)
	if fault.Is(err, fault.Auth, fault.CodeNotFound) {
		return site{}, errClosed()
	}
	if err != nil {
		return site{}, err
	}
	via, err := terminal.ReadJumps(ctx, r.Store, s.UID, h.Jump)
	if fault.Is(err, fault.Auth, fault.CodeNotFound) {
		return site{}, errClosed()
	}
	return site{t, h, via}, err
}

func errClosed() error {
	return fault.New(fault.Policy, "terminal_closed", "The terminal was closed, or its host was deleted.")
}

// place returns the place where the terminal's next command runs.
func (r *runner) place(ctx context.Context, s tool.Scope) (tool.Place, error) {
	at, err := r.site(ctx, s)
	if err != nil {
		return tool.Place{}, err
	}
	return at.place(), nil
}

// place returns a place that differs for different machines, users, sets of accepted keys and directories.
func (at site) place() tool.Place {
	return tool.Place{Label: "On", Name: at.name(), ID: at.id()}
}

func (at site) id() string {
	if at.throughLink() {
		return hashed(at.hostKey(), at.Cwd, at.Real)
	}
	return hashed(at.hostKey(), at.Cwd)
}

// throughLink reports whether the directory is known to be another one than its path says.
func (at site) throughLink() bool { return at.Real != "" && at.Real != at.Cwd }

// lasting returns a name of the directory that does not change. The home directory always has an empty name, because
// its path may become known later.
func (at site) lasting() string {
	if at.Cwd == at.Host.Home {
		return ""
	}
	return at.Cwd
}

// hostKey returns a hash of the machines, users and sets of accepted keys of the host and of those on the way.
func (at site) hostKey() string {
	parts := accepted(&at.Host)
	for i := range at.Via {
		parts = append(parts, "through "+hashed(accepted(&at.Via[i])...))
	}
	return hashed(parts...)
}

// accepted returns everything that identifies a host. A host with a certificate is identified by its address and the
// authorities, as the card shows, because its own key may change.
func accepted(h *terminal.Host) []string {
	var keys []string
	for _, k := range h.HostKeys {
		keys = append(keys, k.SHA256)
	}
	for _, k := range h.CertAuthorities {
		keys = append(keys, "authority "+k.SHA256)
	}
	for _, k := range h.RevokedKeys {
		keys = append(keys, "revoked "+k.SHA256)
	}
	slices.Sort(keys)
	return append([]string{h.ID, h.Address, strconv.Itoa(h.Port), h.Username}, keys...)
}

func hashed(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d:", len(part))
		_, _ = io.WriteString(h, part) // a write to a hash cannot fail
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// name returns the place in the form that its user knows: ana@web (web.example.com) through ana@gate (gate.example.com)
// in /srv.
func (at site) name() string {
	name := login(&at.Host)
	for i := range at.Via {
		name += " through " + login(&at.Via[len(at.Via)-1-i])
	}
	if at.Cwd == "" {
		return name + " in the home directory"
	}
	name += " in " + at.Cwd
	if at.throughLink() {
		name += ", which leads to " + at.Real
	}
	return name
}

// login describes a host: ana@web (web.example.com). A host with a certificate is shown with the authorities that may
// sign one.
func login(h *terminal.Host) string {
	address := h.Address
	if h.Port != 22 {
		address = net.JoinHostPort(address, strconv.Itoa(h.Port))
	}
	for i, k := range h.CertAuthorities {
		address += []string{", certified by ", " or "}[min(i, 1)] + k.SHA256
	}
	return fmt.Sprintf("%s@%s (%s)", h.Username, h.Name, address)
}
