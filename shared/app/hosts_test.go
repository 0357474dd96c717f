package app_test

import (
	"encoding/json"
	"encoding/pem"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/terminal"
	"github.com/countersign-run/countersign/shared/testkit/invariants"
	"github.com/countersign-run/countersign/shared/testkit/sshd"
)

// hostAnswer is a host as the API returns it.
type hostAnswer struct {
	HostID   string
	HostKeys []terminal.HostKey
	Auth     struct{ Kind, PublicKey string }
}

// TestHostAdded scans a real server, adds it with each kind of key, and logs in. No secret appears again: not in an
// answer, the log, the audit or the store.
func TestHostAdded(t *testing.T) {
	srv := sshd.Start(t, sshd.Options{})
	w := deploy(t, "TERMINAL=on", "TERMINAL_HOSTS="+srv.Addr)
	host, port, err := net.SplitHostPort(srv.Addr)
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	var told strings.Builder
	post := func(status int, path string, body any) (h hostAnswer) {
		t.Helper()
		text, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		a := w.call("POST", "/api/agent/hosts"+path, string(text))
		told.Write(a.Body)
		if a.HTTP != status {
			t.Fatalf("POST /hosts%s answered %d %s, want %d", path, a.HTTP, a.Body, status)
		}
		if err := json.Unmarshal(a.Body, &h); err != nil {
			t.Fatal(err)
		}
		return h
	}
	scanned := post(200, "/scan", map[string]any{"host": host, "port": n})
	var want []string
	for _, k := range srv.HostKeys() {
		want = append(want, ssh.FingerprintSHA256(k))
	}
	for _, k := range scanned.HostKeys {
		if !slices.Contains(want, k.SHA256) {
			t.Errorf("scanned %s, and the server has %v", k.SHA256, want)
		}
	}
	add := func(auth map[string]any) hostAnswer {
		t.Helper()
		return post(200, "", map[string]any{"name": "web", "host": host, "port": n, "username": srv.User, "auth": auth,
			"hostKeys": scanned.HostKeys})
	}
	const phrase = "CANARY phrase"
	own := locked(t, srv.Key, phrase)
	generated := add(map[string]any{"kind": "generated"})
	public, _, _, _, err := ssh.ParseAuthorizedKey([]byte(generated.Auth.PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	post(403, "/"+generated.HostID+"/check", nil) // the key is not on the host yet
	srv.Authorize(public)
	post(200, "/"+generated.HostID+"/check", nil)
	mine := add(map[string]any{"kind": "privateKey", "privateKey": own, "passphrase": phrase})
	post(200, "/"+mine.HostID+"/check", nil)
	post(400, "", map[string]any{"name": "web", "host": host, "username": srv.User, "hostKeys": scanned.HostKeys,
		"auth": map[string]any{"kind": "privateKey", "privateKey": own, "passphrase": "CANARY wrong"}})
	add(map[string]any{"kind": "password", "password": "CANARY password"})
	srv.NewHostKeys()
	srv.Kill()
	srv.Restart()
	changed := add(map[string]any{"kind": "privateKey", "privateKey": own, "passphrase": phrase})
	post(409, "/"+changed.HostID+"/check", nil)
	told.Write(w.call("GET", "/api/agent/hosts", "").Body)
	told.Write(w.call("GET", "/api/agent/audit", "").Body)
	for _, secret := range []string{"CANARY", "PRIVATE KEY", strings.Split(own, "\n")[2]} {
		if strings.Contains(told.String(), secret) || strings.Contains(w.Logs.String(), secret) {
			t.Errorf("%q is told or logged", secret)
		}
	}
}

// locked returns a private key with a passphrase.
func locked(t *testing.T, key []byte, phrase string) string {
	t.Helper()
	raw, err := ssh.ParseRawPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKeyWithPassphrase(raw, "CANARY comment", []byte(phrase))
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(block))
}

// TestHostOfOtherUser requests ana's host and terminal as another user on each route. The answers have the same bytes
// as for IDs that do not exist.
func TestHostOfOtherUser(t *testing.T) {
	h := onTerminal(t, nil)
	eve := h.as("eve")
	for _, r := range [][3]string{
		{"POST", "/api/agent/hosts/HOST", `{"name":"mine"}`}, {"DELETE", "/api/agent/hosts/HOST", ""},
		{"POST", "/api/agent/hosts/HOST/check", ""},
		{"POST", "/api/agent/terminals", `{"hostId":"HOST","cols":80,"rows":24}`},
		{"GET", "/api/agent/terminals/TERMINAL", ""}, {"DELETE", "/api/agent/terminals/TERMINAL", ""},
		{"POST", "/api/agent/run", `{"prompt":"x","terminalId":"TERMINAL"}`},
	} {
		var answers []string
		for _, at := range []*strings.Replacer{strings.NewReplacer("HOST", h.host, "TERMINAL", h.terminal),
			strings.NewReplacer("HOST", strings.Repeat("a", 26), "TERMINAL", strings.Repeat("a", 26)+"-"+
				strings.Repeat("b", 26))} {
			a, err := eve(t.Context(), r[0], at.Replace(r[1]), at.Replace(r[2]))
			if err != nil || a.HTTP != http.StatusNotFound {
				t.Fatalf("%s %s: %v %d %s; want a.HTTP %v", r[0], r[1], err, a.HTTP, a.Body, http.StatusNotFound)
			}
			answers = append(answers, strings.Replace(string(a.Body), a.Error.RequestID, "", 1))
		}
		if answers[0] != answers[1] {
			t.Errorf("%s %s: %s for ana's, %s for nobody's", r[0], r[1], answers[0], answers[1])
		}
	}
	for _, path := range []string{"/api/agent/hosts", "/api/agent/terminals"} {
		if a, err := eve(t.Context(), "GET", path, nil); err != nil || strings.Contains(string(a.Body), h.host) {
			t.Errorf("%s: %v %s", path, err, a.Body)
		}
	}
	if a := h.call("GET", "/api/agent/terminals/"+h.terminal, ""); a.HTTP != http.StatusOK {
		t.Errorf("ana's own: %d %s", a.HTTP, a.Body)
	}
}

// TestTerminalKeptDuringRun closes a terminal and deletes its host while a command waits there.
func TestTerminalKeptDuringRun(t *testing.T) {
	h := onTerminal(t, nil)
	h.SetModel((&commands{lines: []string{"touch x"}}).turn)
	asked := h.askOn("Make a file.")
	for _, path := range []string{"/api/agent/terminals/" + h.terminal, "/api/agent/hosts/" + h.host} {
		a := h.call("DELETE", path, "")
		if a.HTTP != http.StatusConflict || a.Error.Code != "terminal_busy" ||
			!strings.Contains(string(a.Body), asked.RunID) {
			t.Errorf("DELETE %s: %d %s", path, a.HTTP, a.Body)
		}
	}
	h.breaks(asked.RunID)
	if a, err := h.as("ana").Cancel(t.Context(), asked.RunID); err != nil || a.HTTP != http.StatusOK {
		t.Fatalf("%v %d %s; want a.HTTP %v", err, a.HTTP, a.Body, http.StatusOK)
	}
	h.deliver()
	if a := h.call("DELETE", "/api/agent/hosts/"+h.host, ""); a.HTTP != http.StatusOK {
		t.Errorf("after the end: %d %s", a.HTTP, a.Body)
	}
}

// TestTerminalFreedByOverdueRun closes a terminal, and deletes a host, while a run whose time is over is stored as open
// there. No sweep has come. The run is ended first, as it would be for the next request.
func TestTerminalFreedByOverdueRun(t *testing.T) {
	for _, what := range []string{"terminals/TERMINAL", "hosts/HOST"} {
		h := onTerminal(t, nil)
		h.SetModel((&commands{lines: []string{"touch x"}}).turn)
		asked := h.askOn("Make a file.")
		h.overdue(asked.RunID)
		path := "/api/agent/" + strings.NewReplacer("HOST", h.host, "TERMINAL", h.terminal).Replace(what)
		if a := h.call("DELETE", path, ""); a.HTTP != http.StatusOK {
			t.Errorf("DELETE %s: %d %s", what, a.HTTP, a.Body)
		}
		if a := h.call("GET", "/api/agent/runs/"+asked.RunID, ""); a.Status != "failed" {
			t.Errorf("%s: the run is %s", what, a.Status)
		}
		if h.exists("x") {
			t.Errorf("%s: the command has run", what)
		}
	}
}

// overdue moves the run's deadline, and the time until which its approvals wait, into the past.
func (h *onHost) overdue(runID string) {
	h.t.Helper()
	docs, err := h.App.Store.Get(h.t.Context(), document.RunPath(runID))
	if err != nil {
		h.t.Fatal(err)
	}
	past := regexp.MustCompile(`"(deadline|expiresAt)":"20`).ReplaceAll(docs[0].Data, []byte(`"$1":"19`))
	if _, err := h.App.Store.Commit(h.t.Context(),
		store.Update(docs[0].Path, docs[0].Version, docs[0].Fields, past)); err != nil {
		h.t.Fatal(err)
	}
}

// breaks checks that the invariants hold for an open run on ana's terminal, and that they detect a terminal that is
// missing from its list, is locked by another run, or has an unencrypted secret.
func (h *onHost) breaks(runID string) {
	h.t.Helper()
	check := func() (numbers []int) {
		h.t.Helper()
		found, err := invariants.Run(h.t.Context(), h.App.Store, runID, nil, invariants.Rules{})
		if err != nil {
			h.t.Fatal(err)
		}
		for _, v := range found {
			numbers = append(numbers, v.Number)
		}
		return numbers
	}
	if found := check(); found != nil {
		h.t.Errorf("the invariants %v do not hold", found)
	}
	for path, c := range map[string]struct {
		old, new string
		want     int
	}{
		document.HostListPath("ana"):                {`"terminals"`, `"others"`, invariants.NoOrphan},
		document.TerminalRunPath("ana", h.terminal): {runID, strings.Repeat("a", 26), invariants.OneOpen},
		document.HostPath("ana", h.host):            {`"web"`, `"-----BEGIN OPENSSH PRIVATE KEY-----"`, invariants.Sealed},
	} {
		docs, err := h.App.Store.Get(h.t.Context(), path)
		if err != nil {
			h.t.Fatal(err)
		}
		h.put(path, strings.Replace(string(docs[0].Data), c.old, c.new, 1))
		if found := check(); !slices.Contains(found, c.want) {
			h.t.Errorf("%s is changed, and %v is found", path, found)
		}
		h.put(path, string(docs[0].Data))
	}
}

// put replaces a document.
func (h *onHost) put(path, data string) {
	h.t.Helper()
	docs, err := h.App.Store.Get(h.t.Context(), path)
	if err == nil {
		_, err = h.App.Store.Commit(h.t.Context(), store.Update(path, docs[0].Version, nil, []byte(data)))
	}
	if err != nil {
		h.t.Fatal(err)
	}
}
