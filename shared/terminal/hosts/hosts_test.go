package hosts_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/countersign-run/countersign/shared/accounts/tokenkey"
	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/audit"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/store/embedded"
	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/terminal/hosts"
	"github.com/countersign-run/countersign/shared/terminal/shell"
	"github.com/countersign-run/countersign/shared/terminal/supervisor"
	"github.com/countersign-run/countersign/shared/testkit/cleanup"
	"github.com/countersign-run/countersign/shared/testkit/faulty"
	"github.com/countersign-run/countersign/shared/testkit/fields"
)

// env is a service over an embedded store, with a record of its requests to hosts.
type env struct {
	*hosts.Hosts
	t       testing.TB
	store   store.Store
	vault   terminal.Vault
	scanned []string
	logins  []string // the secrets
}

func newEnv(t testing.TB) *env { return newEnvOn(t, nil, func(*hosts.Config) {}) }

func newEnvOn(t testing.TB, wrap func(store.Store) store.Store, change func(*hosts.Config)) *env {
	st, err := embedded.OpenMemory(time.Now)
	st = cleanup.Close(t, st, err)
	key, err := tokenkey.Local(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &env{t: t, store: st, vault: terminal.Vault{AEAD: key}}
	cfg := hosts.Config{Store: st, Vault: w.vault, Remote: reached{w}, Now: time.Now}
	if wrap != nil {
		cfg.Store = wrap(st)
	}
	change(&cfg)
	w.Hosts = hosts.New(cfg)
	return w
}

// reached simulates the hosts, and records the service's requests to them.
type reached struct{ w *env }

func (r reached) Scan(_ context.Context, _, _, address string, _ int) ([]terminal.HostKey, error) {
	r.w.scanned = append(r.w.scanned, address)
	return []terminal.HostKey{hostKey(r.w.t)}, nil
}

func (r reached) Check(ctx context.Context, h terminal.Host) (supervisor.Facts, error) {
	secret, err := r.w.vault.Open(ctx, h)
	r.w.logins = append(r.w.logins, string(secret))
	return supervisor.Facts{OS: "Linux 6.1", Shells: []shell.Grammar{shell.POSIX}}, err
}

var hostKeys = sync.OnceValue(func() ssh.PublicKey {
	public, _, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		panic(err)
	}
	return key
})

func hostKey(testing.TB) terminal.HostKey { return described(hostKeys()) }

func described(k ssh.PublicKey) terminal.HostKey {
	return terminal.HostKey{Type: k.Type(), SHA256: ssh.FingerprintSHA256(k),
		Key: base64.StdEncoding.EncodeToString(k.Marshal())}
}

// request returns a valid request.
func request(t testing.TB) terminal.NewHost {
	return terminal.NewHost{Name: "Web 1", Address: "web.example.com", Username: "ana",
		Auth: terminal.NewAuth{Kind: terminal.AuthGenerated}, HostKeys: []terminal.HostKey{hostKey(t)}}
}

func (w *env) add(uid string) terminal.Host {
	w.t.Helper()
	h, err := w.Add(w.t.Context(), uid, request(w.t))
	if err != nil {
		w.t.Fatal(err)
	}
	return h
}

func (w *env) open(uid, hostID string) terminal.Terminal {
	w.t.Helper()
	on, err := w.Open(w.t.Context(), uid, terminal.NewTerminal{HostID: hostID, Cols: 80, Rows: 24})
	if err != nil {
		w.t.Fatal(err)
	}
	return on
}

func TestAddHost(t *testing.T) {
	w := newEnv(t)
	in := request(t)
	port, auto := 2222, terminal.AutoRunReadOnly
	in.Address, in.Port, in.AutoRun, in.ReadPaths = "WEB.Example.com.", &port, &auto, []string{"/var/log"}
	added, err := w.Add(t.Context(), "ana", in)
	if err != nil {
		t.Fatal(err)
	}
	all, err := w.List(t.Context(), "ana")
	if err != nil || len(all) != 1 {
		t.Fatalf("%+v, %v", all, err)
	}
	h := all[0]
	fields.Check(t, h, terminal.Host{ID: added.ID, UID: "ana", Name: "Web 1", Address: "web.example.com", Port: 2222,
		AutoRun: auto, ReadPaths: in.ReadPaths, HostKeys: in.HostKeys})
	if h.Version == "" || h.CreatedAt.IsZero() {
		t.Errorf("Version is %q and CreatedAt is %s; want both set", h.Version, h.CreatedAt)
	}
	if none, err := w.List(t.Context(), "eve"); err != nil || len(none) > 0 {
		t.Errorf("another user sees %+v, %v", none, err)
	}
	def := w.add("ana")
	if def.Port != 22 || def.AutoRun != terminal.AutoRunNone || def.Version == h.Version {
		t.Errorf("by default: %+v", def)
	}
}

// text returns a private key in PEM, encrypted if passphrase is not empty.
func text(t testing.TB, key any, passphrase string) string {
	t.Helper()
	block, err := ssh.MarshalPrivateKey(key, "")
	if passphrase != "" {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(key, "", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(block))
}

// TestSecrets adds a host with each kind of login, and logs in with the stored secret.
func TestSecrets(t *testing.T) {
	_, ed, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	big, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	phrase := "CANARY phrase"
	for name, auth := range map[string]terminal.NewAuth{
		"generated":         {Kind: terminal.AuthGenerated},
		"Ed25519":           {Kind: terminal.AuthPrivateKey, PrivateKey: new(text(t, ed, ""))},
		"with a passphrase": {Kind: terminal.AuthPrivateKey, PrivateKey: new(text(t, ed, phrase)), Passphrase: &phrase},
		"ECDSA":             {Kind: terminal.AuthPrivateKey, PrivateKey: new(text(t, ec, ""))},
		"RSA": {Kind: terminal.AuthPrivateKey, PrivateKey: new(text(t, big, phrase)),
			Passphrase: &phrase},
		"password": {Kind: terminal.AuthPassword, Password: new("CANARY password")},
	} {
		t.Run(name, func(t *testing.T) {
			w := newEnv(t)
			in := request(t)
			in.Auth = auth
			h, err := w.Add(t.Context(), "ana", in)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := w.Check(t.Context(), "ana", h.ID); err != nil || got.OS == "" || len(w.logins) != 1 {
				t.Fatalf("%+v, %v", got, err)
			}
			if now, err := terminal.ReadHost(t.Context(), w.store, "ana", h.ID); err != nil ||
				now.Shell != shell.POSIX {
				t.Errorf("its shell is %q, %v", now.Shell, err)
			}
			secret := w.logins[0]
			if auth.Kind == terminal.AuthPassword {
				if secret != *auth.Password || h.PublicKey != "" {
					t.Errorf("%q, %q", secret, h.PublicKey)
				}
				return
			}
			signer, err := ssh.ParsePrivateKey([]byte(secret))
			if err != nil {
				t.Fatal(err)
			}
			public, comment, _, _, err := ssh.ParseAuthorizedKey([]byte(h.PublicKey))
			if err != nil || ssh.FingerprintSHA256(public) != ssh.FingerprintSHA256(signer.PublicKey()) ||
				comment != "countersign-"+h.ID {
				t.Errorf("%q, %v", h.PublicKey, err)
			}
			if docs, err := w.store.Get(t.Context(), document.HostPath("ana", h.ID)); err != nil ||
				strings.Contains(string(docs[0].Data), "PRIVATE") || strings.Contains(string(docs[0].Data), "CANARY") {
				t.Errorf("it is stored: %s, %v", docs[0].Data, err)
			}
		})
	}
}

// TestAddRefused checks that each error names the field and contains no secret.
func TestAddRefused(t *testing.T) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	weak, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	weakPublic, err := ssh.NewPublicKey(&weak.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	user := func(name string) func(*terminal.NewHost) { return func(in *terminal.NewHost) { in.Username = name } }
	host := func(address string) func(*terminal.NewHost) {
		return func(in *terminal.NewHost) { in.Address = address }
	}
	name := func(name string) func(*terminal.NewHost) { return func(in *terminal.NewHost) { in.Name = name } }
	reads := func(paths ...string) func(*terminal.NewHost) {
		return func(in *terminal.NewHost) { in.ReadPaths = paths }
	}
	auth := func(a terminal.NewAuth) func(*terminal.NewHost) { return func(in *terminal.NewHost) { in.Auth = a } }
	keys := func(change func(k *terminal.HostKey)) func(*terminal.NewHost) {
		return func(in *terminal.NewHost) { change(&in.HostKeys[0]) }
	}
	port := func(n int) func(*terminal.NewHost) { return func(in *terminal.NewHost) { in.Port = &n } }
	for _, c := range []struct {
		field  string
		change func(*terminal.NewHost)
	}{
		{"name", name("")}, {"name", name(" ")}, {"name", name("a\u202eb")}, {"name", name(strings.Repeat("x", 65))},
		{"name", name("a\nb")}, {"name", name(" a")}, {"name", name("a\xff")},
		{"host", host("")}, {"host", host("-oProxyCommand=touch /tmp/x")}, {"host", host("ana@example.com")},
		{"host", host("example.com:22")}, {"host", host("[::1]")}, {"host", host("fe80::1%eth0")},
		{"host", host("a b.example.com")}, {"host", host("exa_mple.com")}, {"host", host("127.1")},
		{"host", host("0x7f.1")}, {"host", host("2130706433")}, {"host", host("0x7f000001")},
		{"host", host("bücher.de")},
		{"host", host("a..b")}, {"host", host(strings.Repeat("a.", 130) + "de")}, {"host", host("web.example.com/")},
		{"host", host("１２７.0.0.1")}, {"host", host("127.0.0.010")}, {"host", host("a\x00.de")},
		{"port", port(0)}, {"port", port(65536)}, {"port", port(-22)},
		{"username", user("")}, {"username", user("-l")}, {"username", user("ana;id")}, {"username", user("a b")},
		{"username", user(strings.Repeat("x", 65))}, {"username", user("ана")},
		{"autoRun", func(in *terminal.NewHost) { in.AutoRun = new(terminal.AutoRun("all")) }},
		{"readPaths[0]", reads("")}, {"readPaths[0]", reads("var/log")}, {"readPaths[1]", reads("/a", "/var/../etc")},
		{"readPaths[0]", reads("/var/log/")}, {"readPaths[0]", reads("//var")}, {"readPaths[0]", reads("/")},
		{"readPaths[0]", reads("/proc/1")}, {"readPaths[0]", reads("/dev")}, {"readPaths[0]", reads("/a\u200bb")},
		{"readPaths[0]", reads("/" + strings.Repeat("x", 1024))}, {"readPaths[1]", reads("/a", "/a")},
		{"readPaths", reads(slices.Repeat([]string{"/a"}, 21)...)},
		{"hostKeys", func(in *terminal.NewHost) { in.HostKeys = nil }},
		{"hostKeys", func(in *terminal.NewHost) { in.HostKeys = slices.Repeat(in.HostKeys, 17) }},
		{"hostKeys[1]", func(in *terminal.NewHost) { in.HostKeys = slices.Repeat(in.HostKeys, 2) }},
		{"hostKeys[0].key", keys(func(k *terminal.HostKey) { k.Key = "AAAA" })},
		{"hostKeys[0].key", keys(func(k *terminal.HostKey) { k.Key = "" })},
		{"hostKeys[0].key", keys(func(k *terminal.HostKey) { *k = described(weakPublic) })},
		{"hostKeys[0].type", keys(func(k *terminal.HostKey) { k.Type = "ssh-rsa" })},
		{"hostKeys[0].sha256", keys(func(k *terminal.HostKey) { k.SHA256 = "SHA256:" + strings.Repeat("A", 43) })},
		{"auth.kind", auth(terminal.NewAuth{})}, {"auth.kind", auth(terminal.NewAuth{Kind: "agent"})},
		{"auth.password", auth(terminal.NewAuth{Kind: terminal.AuthPassword})},
		{"auth.password", auth(terminal.NewAuth{Kind: terminal.AuthPassword, Password: new("")})},
		{"auth.password", auth(terminal.NewAuth{Kind: terminal.AuthPassword, Password: new("CANARY\x00")})},
		{"auth.password", auth(terminal.NewAuth{Kind: terminal.AuthGenerated, Password: new("CANARY")})},
		{"auth.passphrase", auth(terminal.NewAuth{Kind: terminal.AuthPassword, Password: new("CANARY"),
			Passphrase: new("CANARY")})},
		{"auth.privateKey", auth(terminal.NewAuth{Kind: terminal.AuthPrivateKey})},
		{"auth.privateKey", auth(terminal.NewAuth{Kind: terminal.AuthPrivateKey, PrivateKey: new("CANARY")})},
		{"auth.privateKey", auth(terminal.NewAuth{Kind: terminal.AuthPrivateKey,
			PrivateKey: new(strings.Repeat("CANARY", 2000))})},
		{"auth.privateKey", auth(terminal.NewAuth{Kind: terminal.AuthPrivateKey, PrivateKey: new(text(t, weak, ""))})},
		{"auth.passphrase", auth(terminal.NewAuth{Kind: terminal.AuthPrivateKey,
			PrivateKey: new(text(t, key, "CANARY"))})},
		{"auth.passphrase", auth(terminal.NewAuth{Kind: terminal.AuthPrivateKey,
			PrivateKey: new(text(t, key, "right")), Passphrase: new("CANARY")})},
		{"auth.passphrase", auth(terminal.NewAuth{Kind: terminal.AuthPrivateKey,
			PrivateKey: new(text(t, key, "")), Passphrase: new("CANARY")})},
		{"auth.privateKey", auth(terminal.NewAuth{Kind: terminal.AuthPrivateKey, PrivateKey: new(slow(t)),
			Passphrase: new("CANARY")})},
	} {
		w := newEnv(t)
		in := request(t)
		c.change(&in)
		h, err := w.Add(t.Context(), "ana", in)
		var f *fault.Error
		if !errors.As(err, &f) || f.Class != fault.Validation || f.Field != c.field {
			t.Errorf("%s of %+v: %+v, %v", c.field, in, h, err)
			continue
		}
		if strings.Contains(err.Error()+f.Message, "CANARY") || f.Err != nil {
			t.Errorf("the error repeats the secret: %v, %v", err, f.Err)
		}
		if all, err := w.List(t.Context(), "ana"); err != nil || len(all) > 0 {
			t.Errorf("it is stored: %+v, %v", all, err)
		}
	}
}

// slow returns a private key whose passphrase takes too many hash rounds to wait for.
func slow(t testing.TB) string {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode([]byte(text(t, key, "CANARY")))
	at := strings.Index(string(block.Bytes), "bcrypt") + len("bcrypt") + 4 + 4 + 16
	copy(block.Bytes[at:], []byte{0xff, 0xff, 0xff, 0xff})
	return string(pem.EncodeToMemory(block))
}

func TestAddAddresses(t *testing.T) {
	for in, want := range map[string]string{"web": "web", "WEB.example.COM": "web.example.com",
		"web.example.com.": "web.example.com", "10.0.0.7": "10.0.0.7", "2001:DB8::1": "2001:db8::1",
		"::ffff:10.0.0.7": "10.0.0.7", "xn--bcher-kva.de": "xn--bcher-kva.de", "3com.com": "3com.com"} {
		w := newEnv(t)
		req := request(t)
		req.Address = in
		if h, err := w.Add(t.Context(), "ana", req); err != nil || h.Address != want {
			t.Errorf("%s: %s, %v", in, h.Address, err)
		}
		if _, err := w.Scan(t.Context(), "ana", terminal.ScanRequest{Address: in}); err != nil ||
			!slices.Equal(w.scanned, []string{want}) {
			t.Errorf("%s: scanned %v, %v", in, w.scanned, err)
		}
	}
}

func TestEdit(t *testing.T) {
	w := newEnv(t)
	h := w.add("ana")
	got, err := w.Edit(t.Context(), "ana", h.ID, terminal.HostEdit{Name: new("Web 2"),
		AutoRun: new(terminal.AutoRunReadOnly), ReadPaths: &[]string{"/srv"}})
	if err != nil || got.Name != "Web 2" || got.AutoRun != terminal.AutoRunReadOnly || got.Version != h.Version {
		t.Errorf("%+v, %v", got, err)
	}
	if got, err := w.Edit(t.Context(), "ana", h.ID,
		terminal.HostEdit{AutoRun: new(terminal.AutoRunNone)}); err != nil ||
		got.Name != "Web 2" || !slices.Equal(got.ReadPaths, []string{"/srv"}) {
		t.Errorf("%+v, %v", got, err)
	}
	for field, in := range map[string]terminal.HostEdit{"name": {Name: new("")},
		"autoRun": {AutoRun: new(terminal.AutoRun("yes"))}, "readPaths[0]": {ReadPaths: &[]string{"etc"}}} {
		if _, err := w.Edit(t.Context(), "ana", h.ID, in); fault.As(err).Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := w.Edit(t.Context(), "eve", h.ID, terminal.HostEdit{Name: new("x")}); !notFound(err) {
		t.Errorf("of another user: %v", err)
	}
	want := []string{"host_added none " + h.ID, "host_changed read_only " + h.ID, "host_changed none " + h.ID}
	if got := w.chain("ana"); !slices.Equal(got, want) {
		t.Errorf("the audit has %q", got)
	}
}

// chain returns the user's own chain, and checks that no address is in it.
func (w *env) chain(uid string) (entries []string) {
	w.t.Helper()
	for d, err := range document.All(w.t.Context(), w.store, document.AuditOfChain(audit.UserChain(uid), 100)) {
		if err != nil {
			w.t.Fatal(err)
		}
		e, err := audit.Decode(d.Data)
		if err != nil || strings.Contains(string(d.Data), "example") {
			w.t.Errorf("%s, %v", d.Data, err)
		}
		entries = append(entries,
			strings.Join(strings.Fields(strings.Join([]string{e.Kind, e.Decision, e.Ref}, " ")), " "))
	}
	return entries
}

func notFound(err error) bool { return err != nil && err.Error() == fault.NotFound().Error() }

// TestDeletedHost checks that terminals on another host remain.
func TestDeletedHost(t *testing.T) {
	w := newEnv(t)
	gone, stays := w.add("ana"), w.add("ana")
	closed := []terminal.Terminal{w.open("ana", gone.ID), w.open("ana", gone.ID)}
	open := w.open("ana", stays.ID)
	if err := w.Delete(t.Context(), "eve", gone.ID); !notFound(err) {
		t.Errorf("by another user: %v", err)
	}
	if err := w.Delete(t.Context(), "ana", gone.ID); err != nil {
		t.Fatal(err)
	}
	if err := w.Delete(t.Context(), "ana", gone.ID); !notFound(err) {
		t.Errorf("again: %v", err)
	}
	for _, c := range closed {
		if _, err := w.Terminal(t.Context(), "ana", c.ID); !notFound(err) {
			t.Errorf("a terminal on it: %v", err)
		}
	}
	all, err := w.Terminals(t.Context(), "ana")
	if err != nil || len(all) != 1 || all[0] != open {
		t.Errorf("%+v, %v", all, err)
	}
	docs, err := w.store.Get(t.Context(), document.HostPath("ana", gone.ID),
		document.TerminalPath("ana", closed[0].ID), document.TerminalPath("ana", closed[1].ID),
		document.TerminalRunPath("ana", closed[0].ID), document.TerminalRunPath("ana", closed[1].ID))
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range docs {
		if d.Exists() {
			t.Errorf("%s is still stored", d.Path)
		}
	}
	if got := w.chain("ana"); got[len(got)-1] != "host_removed "+gone.ID {
		t.Errorf("the audit has %q", got)
	}
}

func TestTerminals(t *testing.T) {
	w := newEnv(t)
	h := w.add("ana")
	on, err := w.Open(t.Context(), "ana", terminal.NewTerminal{HostID: h.ID, Cols: 80, Rows: 24, Cwd: new("/srv/a b")})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := w.Terminal(t.Context(), "ana", on.ID); err != nil || got != on || got.Cwd != "/srv/a b" {
		t.Errorf("%+v, %v", got, err)
	}
	if id, ok := terminal.HostOf(on.ID); !ok || id != h.ID {
		t.Errorf("its host is %q", id)
	}
	for field, in := range map[string]terminal.NewTerminal{
		"cols": {HostID: h.ID, Rows: 24}, "rows": {HostID: h.ID, Cols: 80, Rows: 1001},
		"cwd": {HostID: h.ID, Cols: 80, Rows: 24, Cwd: new("~")}} {
		if _, err := w.Open(t.Context(), "ana", in); fault.As(err).Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	for _, cwd := range []string{"", "a", "/a/", "/a/../b", "/a\nb", "/a\x00", "/" + strings.Repeat("a", 4096),
		"/\xff"} {
		if _, err := w.Open(t.Context(), "ana", terminal.NewTerminal{HostID: h.ID, Cols: 80, Rows: 24,
			Cwd: &cwd}); fault.As(err).Field != "cwd" {
			t.Errorf("%q: %v", cwd, err)
		}
	}
	for _, id := range []string{h.ID, "", "../" + h.ID, on.ID} {
		if _, err := w.Open(t.Context(), "eve", terminal.NewTerminal{HostID: id, Cols: 80, Rows: 24}); !notFound(err) {
			t.Errorf("on another's host %q: %v", id, err)
		}
	}
	if err := w.Close(t.Context(), "eve", on.ID); !notFound(err) {
		t.Errorf("by another user: %v", err)
	}
	if err := w.Close(t.Context(), "ana", on.ID); err != nil {
		t.Error(err)
	}
	if _, err := w.Terminal(t.Context(), "ana", on.ID); !notFound(err) {
		t.Errorf("after it was closed: %v", err)
	}
}

// begin stores a run with the status, which reserves the terminal.
func begin(t testing.TB, st store.Store, on terminal.Terminal, f document.RunFields) (runID string) {
	t.Helper()
	f.UID, f.CreatedAt, runID = on.UID, time.Now(), run.NewID(rand.Reader)
	path := document.TerminalRunPath(on.UID, on.ID)
	docs, err := st.Get(context.Background(), path)
	if err != nil {
		t.Fatal(err)
	}
	data, err := strictjson.Marshal(run.TerminalRun{UID: on.UID, RunID: runID})
	if err == nil {
		_, err = st.Commit(context.Background(), store.Update(path, docs[0].Version, nil, data),
			store.Create(document.RunPath(runID), f.Map(runID), []byte("{}")))
	}
	if err != nil {
		t.Fatal(err)
	}
	return runID
}

// TestCloseTerminalWithRuns closes terminals on which runs are open, have ended, or were quarantined.
func TestCloseTerminalWithRuns(t *testing.T) {
	w := newEnv(t)
	h := w.add("ana")
	for _, f := range []document.RunFields{{Status: string(run.Completed)}, {Status: string(run.Failed)},
		{Status: string(run.Executing), Quarantined: true, Due: document.Never}} {
		on := w.open("ana", h.ID)
		begin(t, w.store, on, f)
		if err := w.Close(t.Context(), "ana", on.ID); err != nil {
			t.Errorf("%+v: %v", f, err)
		}
	}
	on := w.open("ana", h.ID)
	id := begin(t, w.store, on, document.RunFields{Status: string(run.Executing)})
	var open *run.OpenError
	for what, err := range map[string]error{"closed": w.Close(t.Context(), "ana", on.ID),
		"deleted": w.Delete(t.Context(), "ana", h.ID)} {
		if !fault.Is(err, fault.Policy, fault.CodeTerminalBusy) || !errors.As(err, &open) || open.RunID != id {
			t.Errorf("%s: %v", what, err)
		}
	}
	w.whole("ana")
}

// TestCloseTerminalDuringStart starts a run between the reads of a deletion and its commit.
func TestCloseTerminalDuringStart(t *testing.T) {
	w := newEnv(t)
	h := w.add("ana")
	on := w.open("ana", h.ID)
	racing := hosts.New(hosts.Config{Vault: w.vault, Now: time.Now,
		Store: faulty.Wrap(w.store, faulty.Commits(faulty.Nth(1, faulty.Before(func(*faulty.Call) {
			begin(t, w.store, on, document.RunFields{Status: string(run.Queued)})
		}))))})
	if err := racing.Delete(t.Context(), "ana", h.ID); !fault.Is(err, fault.Policy, fault.CodeTerminalBusy) {
		t.Error(err)
	}
	w.whole("ana")
}

// TestLimitsInRaces adds and opens more than a user may have, concurrently.
func TestLimitsInRaces(t *testing.T) {
	w := newEnv(t)
	for range terminal.MaxHosts - 2 {
		w.add("ana")
	}
	in := request(t)
	if got := atOnce(4, func() error { _, err := w.Add(t.Context(), "ana", in); return err }); got != 2 {
		t.Errorf("%d of 4 more hosts were added, want 2", got)
	}
	all, err := w.List(t.Context(), "ana")
	if err != nil || len(all) != terminal.MaxHosts {
		t.Fatalf("%d hosts, %v", len(all), err)
	}
	for range terminal.MaxTerminals - 2 {
		w.open("ana", all[0].ID)
	}
	if got := atOnce(4, func() error {
		_, err := w.Open(t.Context(), "ana", terminal.NewTerminal{HostID: all[1].ID, Cols: 80, Rows: 24})
		return err
	}); got != 2 {
		t.Errorf("%d of 4 more terminals were opened, want 2", got)
	}
	w.add("ben") // has his own
}

// TestLosingRaces opens a terminal while other requests of its user change the list again and again.
func TestLosingRaces(t *testing.T) {
	w := newEnv(t)
	h := w.add("ana")
	lost := 0
	slow := hosts.New(hosts.Config{Vault: w.vault, Now: time.Now,
		Store: faulty.Wrap(w.store, faulty.Commits(faulty.Each(func(n int) bool { return n < terminal.MaxTerminals },
			func(context.Context, *faulty.Call, faulty.Next) error {
				lost++
				return store.ErrConflict
			})))})
	_, err := slow.Open(t.Context(), "ana", terminal.NewTerminal{HostID: h.ID, Cols: 80, Rows: 24})
	if err != nil || lost != terminal.MaxTerminals-1 {
		t.Errorf("%v after %d lost races", err, lost)
	}
}

// atOnce calls f n times concurrently and returns how often it succeeded. It panics if f fails for another reason than
// a limit.
func atOnce(n int, f func() error) (succeeded int) {
	var mu sync.Mutex
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			err := f()
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				succeeded++
			} else if !fault.Is(err, fault.Policy, fault.CodeTooMany) {
				panic(err)
			}
		})
	}
	all.Wait()
	return succeeded
}

// TestScansAndChecksLimited checks that scans and checks share one limit, before any host is contacted.
func TestScansAndChecksLimited(t *testing.T) {
	w := newEnv(t)
	h := w.add("ana")
	for i := range terminal.AsksPerMinute {
		var err error
		if i%2 == 0 {
			_, err = w.Scan(t.Context(), "ana", terminal.ScanRequest{Address: "10.0.0.1"})
		} else {
			_, err = w.Check(t.Context(), "ana", h.ID)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	_, scan := w.Scan(t.Context(), "ana", terminal.ScanRequest{Address: "10.0.0.1"})
	_, check := w.Check(t.Context(), "ana", h.ID)
	for _, err := range []error{scan, check} {
		if f := fault.As(err); f.Code != fault.CodeTooMany || f.RetryAfter <= 0 || f.Status() != 429 {
			t.Errorf("%v, after %s", err, f.RetryAfter)
		}
	}
	if len(w.scanned)+len(w.logins) != terminal.AsksPerMinute {
		t.Errorf("%d hosts were reached", len(w.scanned)+len(w.logins))
	}
	if _, err := w.Check(t.Context(), "eve", h.ID); !notFound(err) {
		t.Errorf("another's host: %v", err)
	}
	if _, err := w.Scan(t.Context(), "eve", terminal.ScanRequest{Address: "10.0.0.1"}); err != nil {
		t.Errorf("another user: %v", err)
	}
}

// TestSwitchedOff checks that users can still list and delete their entries while terminals are off, and nothing else.
func TestSwitchedOff(t *testing.T) {
	w := newEnv(t)
	h := w.add("ana")
	on := w.open("ana", h.ID)
	off := hosts.New(hosts.Config{Store: w.store, Vault: w.vault, Off: true, Now: time.Now})
	_, scan := off.Scan(t.Context(), "ana", terminal.ScanRequest{Address: "10.0.0.1"})
	_, add := off.Add(t.Context(), "ana", request(t))
	_, edit := off.Edit(t.Context(), "ana", h.ID, terminal.HostEdit{})
	_, check := off.Check(t.Context(), "ana", h.ID)
	_, open := off.Open(t.Context(), "ana", terminal.NewTerminal{HostID: h.ID, Cols: 80, Rows: 24})
	for _, err := range []error{scan, add, edit, check, open} {
		if !fault.Is(err, fault.Policy, hosts.CodeOff) {
			t.Error(err)
		}
	}
	if all, err := off.List(t.Context(), "ana"); err != nil || len(all) != 1 {
		t.Errorf("%+v, %v", all, err)
	}
	if err := off.Close(t.Context(), "ana", on.ID); err != nil {
		t.Error(err)
	}
	if err := off.Delete(t.Context(), "ana", h.ID); err != nil {
		t.Error(err)
	}
}

// TestAddForDisabledUser disables the user between the reads of a request and its commit.
func TestAddForDisabledUser(t *testing.T) {
	w := newEnvOn(t, func(st store.Store) store.Store {
		return faulty.Wrap(st, faulty.Commits(faulty.Nth(1, faulty.Before(func(*faulty.Call) {
			data, err := strictjson.Marshal(run.User{UID: "ana", Disabled: true})
			if err == nil {
				_, err = st.Commit(context.Background(), store.Create(document.UserPath("ana"), nil, data))
			}
			if err != nil {
				t.Error(err)
			}
		}))))
	}, func(*hosts.Config) {})
	if _, err := w.Add(t.Context(), "ana", request(t)); !fault.Is(err, fault.Auth, fault.CodeUnauthenticated) {
		t.Error(err)
	}
	docs, err := w.store.Get(t.Context(), document.HostListPath("ana"))
	if err != nil || docs[0].Exists() {
		t.Errorf("%s, %v", docs[0].Data, err)
	}
}

// TestKilledAtEachCommit checks that all or nothing of each change is stored.
func TestKilledAtEachCommit(t *testing.T) {
	for _, after := range []bool{false, true} {
		w := newEnv(t)
		dies := faulty.Wrap(w.store, faulty.Commits(faulty.Kill(after)))
		dying := hosts.New(hosts.Config{Store: dies, Vault: w.vault, Remote: reached{w}, Now: time.Now})
		kept := w.add("ana")
		w.open("ana", kept.ID)
		for _, change := range []func(){
			func() { _, _ = dying.Add(t.Context(), "ana", request(t)) },
			func() {
				_, _ = dying.Open(t.Context(), "ana", terminal.NewTerminal{HostID: kept.ID, Cols: 80, Rows: 24})
			},
			func() { _ = dying.Delete(t.Context(), "ana", kept.ID) },
		} {
			if !faulty.Dies(change) {
				t.Error("it lives on")
			}
			w.whole("ana")
		}
	}
}

// whole checks that the user's list names exactly the user's hosts and terminals.
func (w *env) whole(uid string) {
	w.t.Helper()
	l, _, err := terminal.ReadList(w.t.Context(), w.store, uid)
	if err != nil {
		w.t.Fatal(err)
	}
	hs, ts, err := terminal.All(w.t.Context(), w.store, uid)
	if err != nil || len(hs) != len(l.Hosts) || len(ts) != len(l.Terminals) {
		w.t.Errorf("the list is %+v: %d hosts and %d terminals, %v", l, len(hs), len(ts), err)
	}
	added := slices.DeleteFunc(w.chain(uid), func(e string) bool { return !strings.HasPrefix(e, "host_added") })
	removed := slices.DeleteFunc(w.chain(uid), func(e string) bool { return !strings.HasPrefix(e, "host_removed") })
	if len(added)-len(removed) != len(hs) {
		w.t.Errorf("%d hosts, and the audit has %q", len(hs), w.chain(uid))
	}
}

// TestEditSealsAgain changes which commands run on a host without approval. The secret can then be opened with the new
// rules only. A host whose secret an earlier release sealed for its user and ID is bound by its next change.
func TestEditSealsAgain(t *testing.T) {
	w := newEnv(t)
	h := w.add("ana")
	some := terminal.AutoRunReadOnly
	edited, err := w.Edit(t.Context(), "ana", h.ID, terminal.HostEdit{AutoRun: &some})
	if err != nil {
		t.Fatal(err)
	}
	want, err := w.vault.Open(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := w.vault.Open(t.Context(), edited); err != nil || !bytes.Equal(got, want) {
		t.Errorf("with the new rules, the secret is %q, %v; want %q", got, err, want)
	}
	widened := h
	widened.AutoRun = some
	if got, err := w.vault.Open(t.Context(), widened); err == nil {
		t.Errorf("the earlier secret with the new rules is %q; want an error", got)
	}

	old := edited
	old.Bound = false
	if old.Secret, err = w.vault.AEAD.EncryptWithContext(t.Context(), want, []byte("ana|host|"+h.ID)); err != nil {
		t.Fatal(err)
	}
	w.put(document.HostPath("ana", h.ID), old)
	name := "Web 2"
	if edited, err = w.Edit(t.Context(), "ana", h.ID, terminal.HostEdit{Name: &name}); err != nil || !edited.Bound {
		t.Errorf("after a change, it is bound: %v, %v; want true", edited.Bound, err)
	}
	if got, err := w.vault.Open(t.Context(), edited); err != nil || !bytes.Equal(got, want) {
		t.Errorf("after a change, the secret is %q, %v; want %q", got, err, want)
	}
}

// put replaces a document, in the form that an earlier release stored.
func (w *env) put(path string, v any) {
	w.t.Helper()
	docs, err := w.store.Get(w.t.Context(), path)
	if err != nil {
		w.t.Fatal(err)
	}
	data, err := strictjson.Marshal(v)
	if err == nil {
		_, err = w.store.Commit(w.t.Context(), store.Update(path, docs[0].Version, docs[0].Fields, data))
	}
	if err != nil {
		w.t.Fatal(err)
	}
}
