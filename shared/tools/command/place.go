package command

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/terminal"
)

// site is the place where a command runs, according to the stored documents.
type site struct {
	terminal.Terminal
	Host terminal.Host
}

// site reads the terminal and its host.
func (r *runner) site(ctx context.Context, s tool.Scope) (site, error) {
	if s.Terminal == "" {
		return site{}, fault.New(fault.Policy, "no_terminal", "This conversation is on no terminal.")
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
	return site{t, h}, err
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

// place distinguishes machines, users, sets of accepted keys and directories.
func (at site) place() tool.Place {
	return tool.Place{Label: "On", Name: at.name(), ID: at.id()}
}

func (at site) id() string { return hashed(at.hostKey(), at.Cwd) }

// lasting returns a name of the directory that does not change: the home directory has an empty name before and after
// its path is known.
func (at site) lasting() string {
	if at.Cwd == at.Host.Home {
		return ""
	}
	return at.Cwd
}

// hostKey distinguishes machines, users and sets of accepted keys. A host with a certificate is bound to its address
// and to the authorities, as the card shows them: its own key may change.
func (at site) hostKey() string {
	var keys []string
	for _, k := range at.Host.HostKeys {
		keys = append(keys, k.SHA256)
	}
	for _, k := range at.Host.CertAuthorities {
		keys = append(keys, "authority "+k.SHA256)
	}
	for _, k := range at.Host.RevokedKeys {
		keys = append(keys, "revoked "+k.SHA256)
	}
	slices.Sort(keys)
	parts := []string{at.Host.ID, at.Host.Address, strconv.Itoa(at.Host.Port), at.Host.Username}
	return hashed(append(parts, keys...)...)
}

func hashed(parts ...string) string {
	h := sha256.New()
	for _, part := range parts {
		fmt.Fprintf(h, "%d:", len(part))
		_, _ = io.WriteString(h, part) // a write to a hash cannot fail
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// name is the place in the form that its user knows: ana@web (web.example.com) in /srv. A host with a certificate is
// shown with the authorities that may sign one.
func (at site) name() string {
	address := at.Host.Address
	if at.Host.Port != 22 {
		if strings.Contains(address, ":") {
			address = "[" + address + "]"
		}
		address += ":" + strconv.Itoa(at.Host.Port)
	}
	for i, k := range at.Host.CertAuthorities {
		address += []string{", certified by ", " or "}[min(i, 1)] + k.SHA256
	}
	dir := at.Cwd
	if dir == "" {
		dir = "the home directory"
	}
	return fmt.Sprintf("%s@%s (%s) in %s", at.Host.Username, at.Host.Name, address, dir)
}
