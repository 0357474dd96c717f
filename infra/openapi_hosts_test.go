package infra_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/countersign-run/countersign/shared/accounts/tokenkey"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/terminal/hosts"
	"github.com/countersign-run/countersign/shared/terminal/shell"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
)

// network has one host with one key.
type network struct {
	key  terminal.HostKey
	fail error // the error of a login
}

func newNetwork(t *testing.T) *network {
	t.Helper()
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return &network{key: terminal.HostKey{Type: key.Type(), SHA256: ssh.FingerprintSHA256(key),
		Key: base64.StdEncoding.EncodeToString(key.Marshal())}}
}

func (n *network) Scan(_ context.Context, _, _, address string, _ int) ([]terminal.HostKey, error) {
	if address != "web.example.com" {
		return nil, fault.New(fault.Tool, fault.CodeHostUnreachable, "The host cannot be reached just now.")
	}
	return []terminal.HostKey{n.key}, nil
}

func (n *network) Check(context.Context, terminal.Host) (supervisor.Facts, error) {
	return supervisor.Facts{OS: "Linux 6.1.0", Shells: []shell.Grammar{shell.Bash}, Home: "/home/ana"}, n.fail
}

// onHosts adds hosts and opens terminals on them.
func onHosts(t *testing.T, d *described) {
	s := d.open(t, nil)
	key, err := tokenkey.Local(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	n := newNetwork(t)
	cfg := hosts.Config{Store: s.store, Vault: terminal.Vault{AEAD: key}, Remote: n, Now: s.now}
	s.App.API.Hosts = hosts.New(cfg)
	s.want(t, 424, ask{op: "scanHost", body: `{"host":"nowhere.example.com"}`})
	var scanned struct{ HostKeys []terminal.HostKey }
	s.want(t, 200, ask{op: "scanHost", body: `{"host":"web.example.com","port":22}`}).into(t, &scanned)
	h := s.added(t, map[string]any{"kind": "generated"}, scanned.HostKeys)
	s.added(t, map[string]any{"kind": "password", "password": "a password"}, scanned.HostKeys)
	s.want(t, 200, ask{op: "hosts"})
	s.want(t, 200, ask{op: "editHost", params: []string{h}, body: `{"autoRun":"read_only","readPaths":["/srv"]}`})
	s.want(t, 400, ask{op: "editHost", params: []string{h}, body: `{}`})
	s.want(t, 404, ask{op: "editHost", params: []string{h}, body: `{"name":"Mine"}`, uid: "eve"})
	check := ask{op: "checkHost", params: []string{h}}
	s.want(t, 200, check)
	for status, err := range map[int]error{
		403: fault.New(fault.Auth, fault.CodeHostLogin, "The host refused the login."),
		409: fault.New(fault.Policy, fault.CodeHostKeyChanged, "The host has another key."),
		424: fault.New(fault.Tool, fault.CodeHostUnreachable, "The host cannot be reached just now.")} {
		n.fail = err
		s.want(t, status, check)
	}
	n.fail = nil
	open := ask{op: "openTerminal", body: inJSON(t, map[string]any{"hostId": h, "cols": 80, "rows": 24, "cwd": "/srv"})}
	var on struct{ TerminalID string }
	s.want(t, 200, open).into(t, &on)
	one := []string{on.TerminalID}
	s.want(t, 200, ask{op: "terminals"})
	s.want(t, 200, ask{op: "terminal", params: one})
	for _, op := range []string{"terminal", "closeTerminal"} {
		s.want(t, 404, ask{op: op, params: one, uid: "eve"})
	}
	s.begun(t, on.TerminalID, "executing")
	s.want(t, 409, ask{op: "closeTerminal", params: one})
	s.want(t, 409, ask{op: "deleteHost", params: []string{h}})
	s.begun(t, on.TerminalID, "completed")
	s.want(t, 200, ask{op: "closeTerminal", params: one})
	for range terminal.MaxTerminals {
		s.want(t, 200, open)
	}
	s.want(t, 429, open)
	s.want(t, 200, ask{op: "deleteHost", params: []string{h}})
	for _, op := range []string{"deleteHost", "checkHost"} {
		s.want(t, 404, ask{op: op, params: []string{h}})
	}
	s.want(t, 404, open)
	s.many(t, scanned.HostKeys)
	cfg.Off = true
	s.App.API.Hosts = hosts.New(cfg)
	for _, op := range []string{"scanHost", "addHost", "editHost", "checkHost", "openTerminal"} {
		s.want(t, 403, d.ops[op].plain(t))
	}
	s.want(t, 200, ask{op: "hosts"})
}

// begun stores a run of ada's with the status, which keeps the terminal in use.
func (s *stand) begun(t *testing.T, terminalID, status string) {
	t.Helper()
	path := document.TerminalRunPath("ada", terminalID)
	docs, err := s.store.Get(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	id := status + nobody
	if _, err := s.store.Commit(t.Context(),
		store.Update(path, docs[0].Version, nil, []byte(`{"uid":"ada","runId":"`+id+`"}`)),
		store.Create(document.RunPath(id), document.RunFields{UID: "ada", Status: status}.Map(id), []byte("{}")),
	); err != nil {
		t.Fatal(err)
	}
}

// many scans, checks and adds hosts up to the limits, and once more.
func (s *stand) many(t *testing.T, keys []terminal.HostKey) {
	t.Helper()
	var h string
	for range terminal.MaxHosts - 1 { // one host exists already
		h = s.added(t, map[string]any{"kind": "generated"}, keys)
	}
	s.want(t, 429, ask{op: "addHost", body: newHost(t, map[string]any{"kind": "generated"}, keys)})
	check := ask{op: "checkHost", params: []string{h}}
	for s.call(t, check).status == 200 {
	}
	s.want(t, 429, check)
	if a := s.want(t, 429, ask{op: "scanHost", body: `{"host":"web.example.com"}`}); a.header.Get("Retry-After") == "" {
		t.Error("the refusal has no Retry-After")
	}
}

// added adds a host of ada's, and returns its ID.
func (s *stand) added(t *testing.T, auth map[string]any, keys []terminal.HostKey) string {
	t.Helper()
	var h struct{ HostID string }
	s.want(t, 200, ask{op: "addHost", body: newHost(t, auth, keys)}).into(t, &h)
	return h.HostID
}

func newHost(t *testing.T, auth map[string]any, keys []terminal.HostKey) string {
	return inJSON(t, map[string]any{"name": "Web 1", "host": "web.example.com", "username": "ana", "auth": auth,
		"hostKeys": keys})
}
