// Package hosts lets users add the hosts on which their commands run, and open terminals there. It validates
// requests, seals secrets, and stores both. It logs in to a host only to check it. Secrets are sent only to the
// host's own login: no answer, error, log line or audit entry contains one, and no audit entry contains an address.
package hosts

import (
	"context"
	"crypto/rand"
	"io"
	"reflect"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/terminal/shell"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
)

// Remote reaches hosts (shared/terminal/remote). Its errors are safe to show. All failures to reach a host have the
// same error.
type Remote interface {
	// Scan returns the keys of the server at an address, without a login there. If jump is not empty, it connects
	// through the user's host with this ID.
	Scan(ctx context.Context, uid, jump, address string, port int) ([]terminal.HostKey, error)
	// Check logs in to the host, and returns the host's facts.
	Check(ctx context.Context, h terminal.Host) (supervisor.Facts, error)
}

// Config configures Hosts. All fields except Off, AuditDays, Rand and EndOverdue are required.
type Config struct {
	Store     store.Store
	Vault     terminal.Vault
	Remote    Remote
	Off       bool // hosts are off: none can be added, opened or reached; existing entries can be listed and deleted
	AuditDays int  // number of days for which audit entries are kept; 0: forever
	Now       func() time.Time
	Rand      io.Reader // nil: crypto/rand

	// EndOverdue ends a run whose time is over, and reports whether it did. Nil: only the sweep ends such runs.
	EndOverdue func(ctx context.Context, runID string) bool
}

// Hosts keeps the hosts and terminals of all users. It is safe for concurrent use.
type Hosts struct{ cfg Config }

// New returns the Hosts in a store.
func New(cfg Config) *Hosts {
	if cfg.Rand == nil {
		cfg.Rand = rand.Reader
	}
	return &Hosts{cfg}
}

// CodeOff means that the operator has not turned terminals on.
const CodeOff fault.Code = "terminal_off"

// on returns an error if terminals are turned off.
func (h *Hosts) on() error {
	if !h.cfg.Off {
		return nil
	}
	return fault.New(fault.Policy, CodeOff, "Terminals are switched off here. You can see and delete stored hosts.")
}

// Scan returns the keys of the server at the address, for the user to compare. It does not log in. Errors:
// ValidationError host, port or jump, PolicyError too_many, terminal_off, and Remote's.
func (h *Hosts) Scan(ctx context.Context, uid string, in terminal.ScanRequest) ([]terminal.HostKey, error) {
	if err := h.on(); err != nil {
		return nil, err
	}
	address, err := normalHost(in.Address)
	if err != nil {
		return nil, err
	}
	port, err := portOf(in.Port)
	if err != nil {
		return nil, err
	}
	jump := orEmpty(in.Jump)
	if err := checkJump(ctx, h.cfg.Store, uid, jump); err != nil {
		return nil, err
	}
	if err := h.count(ctx, uid); err != nil {
		return nil, err
	}
	return h.cfg.Remote.Scan(ctx, uid, jump, address, port)
}

// Check logs in to the user's host, and returns its facts. It stores the host's shell. Errors: AuthError not_found,
// PolicyError too_many, terminal_off, and Remote's.
func (h *Hosts) Check(ctx context.Context, uid, id string) (terminal.Facts, error) {
	if err := h.on(); err != nil {
		return terminal.Facts{}, err
	}
	host, err := terminal.ReadHost(ctx, h.cfg.Store, uid, id)
	if err != nil {
		return terminal.Facts{}, err
	}
	if err := h.count(ctx, uid); err != nil {
		return terminal.Facts{}, err
	}
	is, err := h.cfg.Remote.Check(ctx, host)
	if err != nil {
		return terminal.Facts{}, err
	}
	if len(is.Shells) > 0 {
		err = terminal.SetShell(ctx, h.cfg.Store, uid, id, is.Shells[0])
	}
	return terminal.Facts{OS: is.OS, Shells: append([]shell.Grammar{}, is.Shells...), PTY: is.PTY, Home: is.Home}, err
}

// count counts a scan or a check before it is made.
func (h *Hosts) count(ctx context.Context, uid string) error {
	return h.change(ctx, uid, func(s *state) error {
		s.listChanged = true
		return s.list.Asked.Count(s.now)
	})
}

// Add stores a host for the user. Errors: ValidationError with the field for an invalid value; PolicyError too_many
// above the limit of hosts, or terminal_off; ToolExecutionError token_key and store_unavailable.
func (h *Hosts) Add(ctx context.Context, uid string, in terminal.NewHost) (terminal.Host, error) {
	if err := h.on(); err != nil {
		return terminal.Host{}, err
	}
	host, err := h.checked(in)
	if err != nil {
		return terminal.Host{}, err
	}
	if l, _, err := terminal.ReadList(ctx, h.cfg.Store, uid); err != nil || len(l.Hosts) >= terminal.MaxHosts {
		return terminal.Host{}, orElse(err, errTooManyHosts()) // before a key is opened or generated
	}
	host.UID, host.ID, host.Version = uid, run.NewID(h.cfg.Rand), run.NewID(h.cfg.Rand)
	secret, public, err := h.secretOf(in.Auth, host.ID)
	if err != nil {
		return terminal.Host{}, err
	}
	host.PublicKey = public
	if err = h.cfg.Vault.Seal(ctx, &host, secret); err != nil {
		return terminal.Host{}, err
	}
	err = h.change(ctx, uid, func(s *state) error {
		if len(s.list.Hosts) >= terminal.MaxHosts {
			return errTooManyHosts()
		}
		if err := checkJump(ctx, h.cfg.Store, uid, host.Jump); err != nil {
			return err
		}
		host.CreatedAt = s.at
		s.list.Hosts, s.listChanged = append(s.list.Hosts, host.ID), true
		s.record(audit.HostAdded, host)
		return s.create(document.HostPath(uid, host.ID), host)
	})
	return host, err
}

func errTooManyHosts() error {
	return fault.New(fault.Policy, fault.CodeTooMany, "You have %d hosts, which is the limit. Delete one first.",
		terminal.MaxHosts)
}

func errTooManyTerminals() error {
	return fault.New(fault.Policy, fault.CodeTooMany,
		"You have %d terminals open, which is the limit. Close one first.", terminal.MaxTerminals)
}

func orElse(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// List returns the user's hosts, in the order in which they were added. Its error is ToolExecutionError
// store_unavailable.
func (h *Hosts) List(ctx context.Context, uid string) ([]terminal.Host, error) {
	l, _, err := terminal.ReadList(ctx, h.cfg.Store, uid)
	if err != nil {
		return nil, err
	}
	return terminal.Hosts(ctx, h.cfg.Store, l)
}

// Edit changes the user's host. A waiting command whose card would change needs approval again, and the next command
// already runs by the new rules. Errors: AuthError not_found, ValidationError, PolicyError terminal_off, and
// ToolExecutionError token_key and store_unavailable.
func (h *Hosts) Edit(ctx context.Context, uid, id string, in terminal.HostEdit) (host terminal.Host, err error) {
	if err := h.on(); err != nil {
		return terminal.Host{}, err
	}
	err = h.change(ctx, uid, func(s *state) error {
		var d store.Doc
		if host, d, err = s.host(ctx, id); err != nil {
			return err
		}
		before := host
		if err := edit(&host, in); err != nil {
			return err
		}
		if reflect.DeepEqual(host, before) {
			return nil
		}
		secret, err := h.cfg.Vault.Open(ctx, before)
		if err != nil {
			return err
		}
		if err := h.cfg.Vault.Seal(ctx, &host, secret); err != nil {
			return err
		}
		s.record(audit.HostChanged, host)
		return s.update(d, host)
	})
	return host, err
}

// Delete deletes the user's host with its secret, and its terminals. The keeper's files on the host remain. Errors:
// AuthError not_found, PolicyError terminal_busy while a run is open on one of its terminals, PolicyError host_in_use
// while another host is reached through it, and ToolExecutionError store_unavailable.
func (h *Hosts) Delete(ctx context.Context, uid, id string) error {
	return h.closing(ctx, uid, func(s *state) error {
		host, d, err := s.host(ctx, id)
		if err != nil {
			return err
		}
		if err := s.checkUnused(ctx, id); err != nil {
			return err
		}
		if err := s.close(ctx, s.list.OnHost(id)...); err != nil {
			return err
		}
		s.list.Hosts = slices.DeleteFunc(s.list.Hosts, func(other string) bool { return other == id })
		s.listChanged = true
		s.record(audit.HostRemoved, host)
		s.writes = append(s.writes, store.Delete(d.Path, d.Version))
		return nil
	})
}

// Open opens a terminal for the user. It sends nothing to the host. Errors: AuthError not_found if the host does not
// exist; ValidationError; PolicyError too_many or terminal_off; ToolExecutionError store_unavailable.
func (h *Hosts) Open(ctx context.Context, uid string, in terminal.NewTerminal) (t terminal.Terminal, err error) {
	if err := h.on(); err != nil {
		return t, err
	}
	if err := checkTerminal(in); err != nil {
		return t, err
	}
	t = terminal.Terminal{UID: uid, HostID: in.HostID, Cols: in.Cols, Rows: in.Rows,
		ID: terminal.NewID(in.HostID, h.cfg.Rand)}
	if in.Cwd != nil {
		t.Cwd = *in.Cwd
	}
	err = h.change(ctx, uid, func(s *state) error {
		_, d, err := s.host(ctx, in.HostID)
		if err != nil {
			return err
		}
		if len(s.list.Terminals) >= terminal.MaxTerminals {
			return errTooManyTerminals()
		}
		t.CreatedAt = s.at
		s.list.Terminals, s.listChanged = append(s.list.Terminals, t.ID), true
		s.writes = append(s.writes, store.Check(d.Path, d.Version))
		if err := s.create(document.TerminalRunPath(uid, t.ID), run.TerminalRun{UID: uid}); err != nil {
			return err
		}
		return s.create(document.TerminalPath(uid, t.ID), t)
	})
	return t, err
}

// Terminals returns the user's terminals, in the order in which they were opened. Its error is ToolExecutionError
// store_unavailable.
func (h *Hosts) Terminals(ctx context.Context, uid string) ([]terminal.Terminal, error) {
	l, _, err := terminal.ReadList(ctx, h.cfg.Store, uid)
	if err != nil {
		return nil, err
	}
	return terminal.Terminals(ctx, h.cfg.Store, l)
}

// Terminal returns the user's terminal. It returns the errors of terminal.ReadTerminal.
func (h *Hosts) Terminal(ctx context.Context, uid, id string) (terminal.Terminal, error) {
	return terminal.ReadTerminal(ctx, h.cfg.Store, uid, id)
}

// Close closes the user's terminal. The user's shell on the host ends by itself later. Errors: AuthError not_found,
// PolicyError terminal_busy while a run is open on it, and ToolExecutionError store_unavailable.
func (h *Hosts) Close(ctx context.Context, uid, id string) error {
	return h.closing(ctx, uid, func(s *state) error {
		if !slices.Contains(s.list.Terminals, id) {
			return fault.NotFound()
		}
		return s.close(ctx, id)
	})
}
