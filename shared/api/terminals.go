package api

import (
	"context"
	"time"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/terminal"
)

// Hosts manages the users' hosts and the terminals open on them (shared/terminal/hosts).
type Hosts interface {
	Scan(ctx context.Context, uid string, in terminal.ScanRequest) ([]terminal.HostKey, error)
	Add(ctx context.Context, uid string, in terminal.NewHost) (terminal.Host, error)
	List(ctx context.Context, uid string) ([]terminal.Host, error)
	Edit(ctx context.Context, uid, hostID string, in terminal.HostEdit) (terminal.Host, error)
	Check(ctx context.Context, uid, hostID string) (terminal.Facts, error)
	Delete(ctx context.Context, uid, hostID string) error

	Open(ctx context.Context, uid string, in terminal.NewTerminal) (terminal.Terminal, error)
	Terminals(ctx context.Context, uid string) ([]terminal.Terminal, error)
	Terminal(ctx context.Context, uid, terminalID string) (terminal.Terminal, error)
	Close(ctx context.Context, uid, terminalID string) error
}

// hostView is a host as its user sees it, without its secret.
type hostView struct {
	HostID          string             `json:"hostId"`
	Name            string             `json:"name"`
	Host            string             `json:"host"`
	Port            int                `json:"port"`
	Username        string             `json:"username"`
	Auth            authView           `json:"auth"`
	HostKeys        []terminal.HostKey `json:"hostKeys"`
	CertAuthorities []terminal.HostKey `json:"certAuthorities"`
	RevokedKeys     []terminal.HostKey `json:"revokedKeys"`
	Jump            string             `json:"jump,omitempty"` // the ID of the host that it is reached through
	AutoRun         terminal.AutoRun   `json:"autoRun"`
	ReadPaths       []string           `json:"readPaths"`
	CreatedAt       time.Time          `json:"createdAt"`
}

type authView struct {
	Kind      terminal.AuthKind `json:"kind"`
	PublicKey string            `json:"publicKey,omitempty"` // to add to authorized_keys
}

func viewHost(h terminal.Host) hostView {
	return hostView{HostID: h.ID, Name: h.Name, Host: h.Address, Port: h.Port, Username: h.Username,
		Auth: authView{h.Auth, h.PublicKey}, HostKeys: append([]terminal.HostKey{}, h.HostKeys...),
		CertAuthorities: append([]terminal.HostKey{}, h.CertAuthorities...),
		RevokedKeys:     append([]terminal.HostKey{}, h.RevokedKeys...), Jump: h.Jump, AutoRun: h.Unasked(),
		ReadPaths: append([]string{}, h.ReadPaths...), CreatedAt: h.CreatedAt}
}

type terminalView struct {
	TerminalID string    `json:"terminalId"`
	HostID     string    `json:"hostId"`
	Cols       int       `json:"cols"`
	Rows       int       `json:"rows"`
	Cwd        string    `json:"cwd,omitempty"` // empty for the home directory
	CreatedAt  time.Time `json:"createdAt"`
}

func viewTerminal(t terminal.Terminal) terminalView {
	return terminalView{t.ID, t.HostID, t.Cols, t.Rows, t.Cwd, t.CreatedAt}
}

// onHosts serves a route of hosts and terminals. In a program without hosts the path does not exist.
func onHosts(h func(r *request, of Hosts) (any, error)) handler {
	return reading(func(r *request) (any, error) {
		if r.api.Hosts == nil {
			return nil, errNoSuchPath()
		}
		return h(r, r.api.Hosts)
	})
}

func postScan(r *request, of Hosts) (any, error) {
	var in terminal.ScanRequest
	if _, err := r.decode(&in); err != nil {
		return nil, err
	}
	keys, err := of.Scan(r.Context(), r.uid, in)
	if err != nil {
		return nil, err
	}
	return struct {
		ok
		HostKeys []terminal.HostKey `json:"hostKeys"`
	}{ok{true}, keys}, nil
}

func postHost(r *request, of Hosts) (any, error) {
	var in terminal.NewHost
	if _, err := r.decode(&in); err != nil {
		return nil, err
	}
	ctx, cancel := r.working()
	defer cancel()
	return hostAnswer(of.Add(ctx, r.uid, in))
}

func hostAnswer(h terminal.Host, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return struct {
		ok
		hostView
	}{ok{true}, viewHost(h)}, nil
}

func getHosts(r *request, of Hosts) (any, error) {
	all, err := of.List(r.Context(), r.uid)
	if err != nil {
		return nil, err
	}
	views := make([]hostView, len(all))
	for i, h := range all {
		views[i] = viewHost(h)
	}
	return struct {
		ok
		Hosts []hostView `json:"hosts"`
	}{ok{true}, views}, nil
}

func postHostEdit(r *request, of Hosts) (any, error) {
	id, err := r.id("hostId")
	if err != nil {
		return nil, err
	}
	var in terminal.HostEdit
	if _, err := r.decode(&in); err != nil {
		return nil, err
	}
	if in == (terminal.HostEdit{}) {
		return nil, fault.Invalid("name", "name, autoRun or readPaths is required")
	}
	ctx, cancel := r.working()
	defer cancel()
	return hostAnswer(of.Edit(ctx, r.uid, id, in))
}

func deleteHost(r *request, of Hosts) (any, error) {
	id, err := r.id("hostId")
	if err != nil {
		return nil, err
	}
	ctx, cancel := r.working()
	defer cancel()
	return ok{true}, of.Delete(ctx, r.uid, id)
}

func postCheck(r *request, of Hosts) (any, error) {
	id, err := r.id("hostId")
	if err != nil {
		return nil, err
	}
	facts, err := of.Check(r.Context(), r.uid, id)
	if err != nil {
		return nil, err
	}
	return struct {
		ok
		terminal.Facts
	}{ok{true}, facts}, nil
}

func postTerminal(r *request, of Hosts) (any, error) {
	var in terminal.NewTerminal
	if _, err := r.decode(&in); err != nil {
		return nil, err
	}
	ctx, cancel := r.working()
	defer cancel()
	return terminalAnswer(of.Open(ctx, r.uid, in))
}

func terminalAnswer(t terminal.Terminal, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return struct {
		ok
		terminalView
	}{ok{true}, viewTerminal(t)}, nil
}

func getTerminals(r *request, of Hosts) (any, error) {
	all, err := of.Terminals(r.Context(), r.uid)
	if err != nil {
		return nil, err
	}
	views := make([]terminalView, len(all))
	for i, t := range all {
		views[i] = viewTerminal(t)
	}
	return struct {
		ok
		Terminals []terminalView `json:"terminals"`
	}{ok{true}, views}, nil
}

func getTerminal(r *request, of Hosts) (any, error) {
	id, err := r.id("terminalId")
	if err != nil {
		return nil, err
	}
	return terminalAnswer(of.Terminal(r.Context(), r.uid, id))
}

func deleteTerminal(r *request, of Hosts) (any, error) {
	id, err := r.id("terminalId")
	if err != nil {
		return nil, err
	}
	ctx, cancel := r.working()
	defer cancel()
	return ok{true}, of.Close(ctx, r.uid, id)
}
