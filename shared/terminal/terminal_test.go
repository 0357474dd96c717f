package terminal_test

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/accounts/tokenkey"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/store/embedded"
	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/testkit/cleanup"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
)

func newStore(t testing.TB) store.Store {
	st, err := embedded.OpenMemory(time.Now)
	return cleanup.Close(t, st, err)
}

func put(t testing.TB, st store.Store, path string, v any) {
	t.Helper()
	data, err := strictjson.Marshal(v)
	if err == nil {
		_, err = st.Commit(t.Context(), store.Create(path, nil, data))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// open stores a host of the user's with a terminal on it.
func open(t testing.TB, st store.Store, uid string) (terminal.Host, terminal.Terminal) {
	t.Helper()
	h := terminal.Host{ID: run.NewID(rand.Reader), UID: uid, Name: "web", Address: "web.example.com", Port: 22}
	put(t, st, document.HostPath(uid, h.ID), h)
	on := terminal.Terminal{ID: terminal.NewID(h.ID, rand.Reader), UID: uid, HostID: h.ID, Cols: 80, Rows: 24}
	put(t, st, document.TerminalPath(uid, on.ID), on)
	return h, on
}

// TestScopeOfTerminal reads a terminal and its host by the terminal's id alone, in one round trip.
func TestScopeOfTerminal(t *testing.T) {
	st := newStore(t)
	h, on := open(t, st, "ana")
	paths := terminal.Reads(tool.Scope{UID: "ana", Terminal: on.ID})
	docs, err := st.Get(t.Context(), paths...)
	if err != nil {
		t.Fatal(err)
	}
	nowhere := faulty.Wrap(st, faulty.Down)
	ctx := document.With(t.Context(), docs...)
	if got, err := terminal.ReadTerminal(ctx, nowhere, "ana", on.ID); err != nil || got != on {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := terminal.ReadHost(ctx, nowhere, "ana", h.ID); err != nil || got.Address != h.Address {
		t.Errorf("%+v, %v", got, err)
	}
	for _, id := range []string{"", "x", strings.Repeat("a", 26), "../" + on.ID} {
		if got := terminal.Reads(tool.Scope{UID: "ana", Terminal: id}); got != nil {
			t.Errorf("%q: %v", id, got)
		}
	}
}

// TestLoadOfAnotherUser reads another user's entries and missing ones: both give the same error.
func TestLoadOfAnotherUser(t *testing.T) {
	st := newStore(t)
	h, on := open(t, st, "ana")
	for _, id := range []string{h.ID, run.NewID(rand.Reader), "", "../x", on.ID} {
		if _, err := terminal.ReadHost(t.Context(), st, "eve", id); err == nil ||
			err.Error() != fault.NotFound().Error() {
			t.Errorf("host %q: %v", id, err)
		}
	}
	for _, id := range []string{on.ID, terminal.NewID(h.ID, rand.Reader), "", h.ID, "../x-y"} {
		if _, err := terminal.ReadTerminal(t.Context(), st, "eve", id); err == nil ||
			err.Error() != fault.NotFound().Error() {
			t.Errorf("terminal %q: %v", id, err)
		}
	}
}

// TestDirectoryWrittenOnChange counts the commits for the directories in which commands end.
func TestDirectoryWrittenOnChange(t *testing.T) {
	st := newStore(t)
	_, on := open(t, st, "ana")
	counted := faulty.Count(st)
	for _, step := range []struct {
		cwd, want string
		commits   int
	}{{"/tmp", "/tmp", 1}, {"/tmp", "/tmp", 0}, {"/var/log", "/var/log", 1}, {"relative", "", 1},
		{"/" + strings.Repeat("x", 5000), "", 0}} {
		counted.Take()
		if err := terminal.SetCwd(t.Context(), counted, "ana", on.ID, step.cwd, ""); err != nil {
			t.Fatal(err)
		}
		commits := counted.Take().Commit.Trips
		got, err := terminal.ReadTerminal(t.Context(), st, "ana", on.ID)
		if err != nil || got.Cwd != step.want || commits != step.commits {
			t.Errorf("%.20q: %q after %d commits, %v", step.cwd, got.Cwd, commits, err)
		}
	}
	gone := terminal.NewID(on.HostID, rand.Reader)
	if err := terminal.SetCwd(t.Context(), st, "ana", gone, "/tmp", ""); err != nil {
		t.Errorf("of a terminal that is closed: %v", err)
	}
}

// TestDirectorySetOnCurrentTerminal lets the terminal change after it was read.
func TestDirectorySetOnCurrentTerminal(t *testing.T) {
	st := newStore(t)
	_, on := open(t, st, "ana")
	path := document.TerminalPath("ana", on.ID)
	docs, err := st.Get(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := terminal.SetCwd(t.Context(), st, "ana", on.ID, "/first", ""); err != nil {
		t.Fatal(err)
	}
	if err := terminal.SetCwd(document.With(t.Context(), docs...), st, "ana", on.ID, "/second", ""); err != nil {
		t.Fatal(err)
	}
	if got, err := terminal.ReadTerminal(t.Context(), st, "ana", on.ID); err != nil || got.Cwd != "/second" {
		t.Errorf("%q, %v", got.Cwd, err)
	}
}

// TestSecretBoundToHost moves a sealed secret to another user and another host, and changes each field that the user
// has confirmed.
func TestSecretBoundToHost(t *testing.T) {
	key, err := tokenkey.Local(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	v := terminal.Vault{AEAD: key}
	h := terminal.Host{UID: "ana", ID: run.NewID(rand.Reader), Address: "web.example.com", Port: 22, Username: "ana",
		Auth: terminal.AuthPassword, AutoRun: terminal.AutoRunNone, HostKeys: []terminal.HostKey{{SHA256: "a"}},
		ReadPaths: []string{}}
	if err := v.Seal(t.Context(), &h, []byte("CANARY")); err != nil {
		t.Fatal(err)
	}
	h.ReadPaths = nil // as it is read back
	if strings.Contains(string(h.Secret), "CANARY") {
		t.Error("it is not sealed")
	}
	if got, err := v.Open(t.Context(), h); err != nil || string(got) != "CANARY" {
		t.Errorf("%q, %v", got, err)
	}
	for what, change := range map[string]func(*terminal.Host){
		"another user":            func(h *terminal.Host) { h.UID = "eve" },
		"another host":            func(h *terminal.Host) { h.ID = run.NewID(rand.Reader) },
		"damaged":                 func(h *terminal.Host) { h.Secret = slices.Concat(h.Secret, []byte{0}) },
		"none":                    func(h *terminal.Host) { h.Secret = nil },
		"as of a release before":  func(h *terminal.Host) { h.Bound = false },
		"another address":         func(h *terminal.Host) { h.Address = "eve.example.com" },
		"another port":            func(h *terminal.Host) { h.Port = 2222 },
		"another account":         func(h *terminal.Host) { h.Username = "root" },
		"another kind of login":   func(h *terminal.Host) { h.Auth = terminal.AuthPrivateKey },
		"another key":             func(h *terminal.Host) { h.HostKeys = []terminal.HostKey{{SHA256: "b"}} },
		"no key":                  func(h *terminal.Host) { h.HostKeys = nil },
		"an authority":            func(h *terminal.Host) { h.CertAuthorities = h.HostKeys },
		"a revoked key":           func(h *terminal.Host) { h.RevokedKeys = h.HostKeys },
		"a jump host":             func(h *terminal.Host) { h.Jump = h.ID },
		"commands without asking": func(h *terminal.Host) { h.AutoRun = terminal.AutoRunReadOnly },
		"files without asking":    func(h *terminal.Host) { h.ReadPaths = []string{"/"} },
	} {
		bad := h
		change(&bad)
		if got, err := v.Open(t.Context(), bad); !fault.Is(err, fault.Tool, "token_key") || got != nil {
			t.Errorf("%s: the secret is %q, and the error %v; want token_key", what, got, err)
		}
	}
}

// TestSecretOfReleaseBefore opens a secret that an earlier release sealed for its user and host only. That secret is
// not accepted as a bound one.
func TestSecretOfReleaseBefore(t *testing.T) {
	key, err := tokenkey.Local(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	v := terminal.Vault{AEAD: key}
	h := terminal.Host{UID: "ana", ID: "host-1", Address: "web.example.com", Port: 22}
	if h.Secret, err = key.EncryptWithContext(t.Context(), []byte("CANARY"), []byte("ana|host|host-1")); err != nil {
		t.Fatal(err)
	}
	if got, err := v.Open(t.Context(), h); err != nil || string(got) != "CANARY" {
		t.Errorf("the secret is %q, %v; want CANARY", got, err)
	}
	h.Bound = true
	if got, err := v.Open(t.Context(), h); !fault.Is(err, fault.Tool, "token_key") {
		t.Errorf("the secret is %q, and the error %v; want token_key", got, err)
	}
}

func TestAsked(t *testing.T) {
	now := time.Date(2027, 3, 1, 9, 0, 0, 0, time.UTC)
	var a terminal.Asked
	for i := range terminal.AsksPerMinute {
		if err := a.Count(now.Add(time.Duration(i) * time.Second)); err != nil {
			t.Fatal(err)
		}
	}
	err := a.Count(now.Add(10 * time.Second))
	if f := fault.As(err); f.Code != fault.CodeTooMany || f.RetryAfter != 50*time.Second {
		t.Errorf("the eleventh in a minute: %v, after %s", err, f.RetryAfter)
	}
	if err := a.Count(now.Add(time.Minute)); err != nil {
		t.Errorf("a minute later: %v", err)
	}
	for at := now.Add(time.Hour); a.N < terminal.AsksPerDay; at = at.Add(time.Minute) {
		if err := a.Count(at); err != nil {
			t.Fatal(err)
		}
	}
	err = a.Count(now.Add(14 * time.Hour))
	if f := fault.As(err); f.Code != fault.CodeTooMany || f.RetryAfter != time.Hour {
		t.Errorf("one more than in a day: %v, after %s", err, f.RetryAfter)
	}
	if err := a.Count(now.Add(15 * time.Hour)); err != nil {
		t.Errorf("the next day: %v", err)
	}
}

// TestErase checks that nothing is left of the user, and that nothing of others is deleted.
func TestErase(t *testing.T) {
	st := newStore(t)
	var lists []terminal.List
	for _, uid := range []string{"ana", "ben"} {
		h, on := open(t, st, uid)
		l := terminal.List{UID: uid, Hosts: []string{h.ID}, Terminals: []string{on.ID}}
		put(t, st, document.HostListPath(uid), l)
		lists = append(lists, l)
	}
	for _, want := range []bool{true, false} {
		if existed, err := terminal.Erase(t.Context(), st, "ana"); err != nil || existed != want {
			t.Errorf("existed is %t, %v", existed, err)
		}
	}
	for i, uid := range []string{"ana", "ben"} {
		docs, err := st.Get(context.Background(), document.HostListPath(uid),
			document.HostPath(uid, lists[i].Hosts[0]), document.TerminalPath(uid, lists[i].Terminals[0]))
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range docs {
			if d.Exists() != (uid == "ben") {
				t.Errorf("%s: exists is %t", d.Path, d.Exists())
			}
		}
	}
}
