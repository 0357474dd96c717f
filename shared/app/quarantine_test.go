package app_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
	"github.com/countersign-run/countersign/shared/testkit/sshd"
)

// A storeCopy has the contents of a store's files at one moment.
type storeCopy map[string][]byte

// storeFiles are the files of a store that are in a backup. The file with the newest commit is in none.
var storeFiles = []string{"countersign.db", "countersign.db-wal", "countersign.db-shm"}

func copyStore(t *testing.T, dir string) storeCopy {
	t.Helper()
	c := storeCopy{}
	for _, name := range storeFiles[:2] {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		c[name] = data
	}
	return c
}

// putBack replaces the store's files with the copy.
func (c storeCopy) putBack(t *testing.T, dir string) {
	t.Helper()
	for _, name := range storeFiles {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	for name, data := range c {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// restart stops the deployment, calls f, and starts it again in the directory.
func (w *proved) restart(o testkit.Options, f func()) {
	w.t.Helper()
	if err := w.Stop(); err != nil {
		w.t.Fatal(err)
	}
	f()
	if err := w.Start(w.t.Context(), o); err != nil {
		w.t.Fatal(err)
	}
}

// TestRestoreOfExecutedEffect checks that an effect approved in an older copy of the store, and executed since, is not
// executed again from the copy. The user is asked, also after another start, and decides.
func TestRestoreOfExecutedEffect(t *testing.T) {
	for decision, sent := range map[string]int{"confirm_done": 1, "start_new": 2} {
		t.Run(decision, func(t *testing.T) {
			o := testkit.Options{Dir: t.TempDir()}
			w := deployWith(t, o)
			w.mail()
			r := w.ask()
			w.decide(r, "approve_once")
			before := copyStore(t, o.Dir)
			w.deliver()
			w.sent(1)
			w.restart(o, func() { before.putBack(t, o.Dir) })
			w.deliver()
			w.restart(o, func() {})
			w.deliver()
			w.sent(1)
			r = w.call("GET", "/api/agent/runs/"+r.RunID, "")
			if len(r.Approvals) != 1 || !strings.Contains(string(r.Body), "restored from a backup") {
				t.Fatalf("nobody is asked: %s", r.Body)
			}
			w.decide(r, decision)
			w.deliver()
			w.sent(1)
			if decision == "start_new" { // another call, whose card says the same
				r = w.call("GET", "/api/agent/runs/"+r.RunID, "")
				if !strings.Contains(string(r.Body), "this may have been") {
					t.Errorf("the new card says %s", r.Body)
				}
				w.decide(r, "approve_once")
				w.deliver()
			}
			w.sent(sent)
		})
	}
}

// TestRestoreOfOpenCard checks that a card that is open in an older copy of the store, and was approved since, says
// so before the user approves it again.
func TestRestoreOfOpenCard(t *testing.T) {
	o := testkit.Options{Dir: t.TempDir()}
	w := deployWith(t, o)
	w.mail()
	r := w.ask()
	before := copyStore(t, o.Dir)
	w.approve(r)
	w.sent(1)
	w.restart(o, func() { before.putBack(t, o.Dir) })
	if r = w.call("GET", "/api/agent/runs/"+r.RunID, ""); !strings.Contains(string(r.Body), "restored from a backup") {
		t.Fatalf("the card does not warn: %s", r.Body)
	}
	w.approve(r)
	w.sent(2)
}

// TestRestoreOfAlwaysAllowedCall checks that in an older copy of the store, a call that otherwise needs no approval
// asks, even if the copy's run has not proposed it yet.
func TestRestoreOfAlwaysAllowedCall(t *testing.T) {
	o := testkit.Options{Dir: t.TempDir()}
	w := deployWith(t, o)
	w.mail()
	w.decide(w.ask(), "approve_and_always_allow_recipient")
	w.deliver()
	w.SetModel(testkit.Wants("gmail_send", testkit.Mail("carol@example.com", "s", "b")))
	r := w.ask()
	w.SetModel(func(r fakegemini.Request) fakegemini.Turn {
		if len(r.Responses()) > 1 {
			return fakegemini.Turn{Text: "Done."}
		}
		return call("gmail_send", `{"to":["bob@example.com"],"subject":"please do it","body":"please do it"}`)
	})
	w.decide(r, "approve_once")
	before := copyStore(t, o.Dir)
	w.deliver()
	w.sent(3)
	w.restart(o, func() { before.putBack(t, o.Dir) })
	w.deliver()
	w.sent(3)
	w.decide(w.call("GET", "/api/agent/runs/"+r.RunID, ""), "confirm_done")
	w.deliver()
	w.sent(3)
	if r = w.call("GET", "/api/agent/runs/"+r.RunID, ""); len(r.Approvals) != 1 {
		t.Errorf("nobody is asked: %s", r.Body)
	}
}

// TestRestoreOfWithdrawnEntry checks that an older copy of the store does not bring back an always-allow entry that
// its user withdrew, by an undo or by removing the entry. A new run asks, and the user can allow it again.
func TestRestoreOfWithdrawnEntry(t *testing.T) {
	for name, c := range map[string]struct {
		hold     string
		withdraw func(w *proved, approvalID string) testkit.Answer
		sent     int // before the copy is put back
	}{
		"undo": {`,"holdSeconds":60`, func(w *proved, id string) testkit.Answer {
			return w.call("POST", "/api/agent/approvals/resolve", `{"decision":"undo","approvalId":"`+id+`"}`)
		}, 0},
		"removed entry": {"", func(w *proved, _ string) testkit.Answer {
			var list struct{ Entries []struct{ ID string } }
			w.decode("GET", "/api/agent/allowlist", &list)
			return w.call("DELETE", "/api/agent/allowlist/"+list.Entries[0].ID, "")
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			o := testkit.Options{Dir: t.TempDir()}
			w := deployWith(t, o)
			w.mail()
			r := w.ask()
			id := r.Approvals[0].ApprovalID
			w.wants("the yes", w.call("POST", "/api/agent/approvals/resolve", `{"approvalId":"`+id+
				`","decision":"approve_and_always_allow_recipient"`+c.hold+`}`), http.StatusOK, "")
			if c.sent > 0 {
				w.deliver()
			}
			before := copyStore(t, o.Dir)
			w.wants("the withdrawal", c.withdraw(w, id), http.StatusOK, "")
			w.deliver()
			w.sent(c.sent)
			w.restart(o, func() { before.putBack(t, o.Dir) })
			w.deliver()
			r = w.ask()
			w.deliver()
			if w.sent(c.sent); len(r.Approvals) != 1 {
				t.Fatalf("nobody is asked: %s", r.Body)
			}
			w.decide(r, "approve_and_always_allow_recipient")
			w.deliver()
			w.restart(o, func() {}) // the same copy removes nothing again
			var list struct{ Entries []struct{ Recipient string } }
			if w.decode("GET", "/api/agent/allowlist", &list); len(list.Entries) != 1 {
				t.Errorf("always allowed is %v", list.Entries)
			}
		})
	}
}

// TestCopyWithdrawsTokensAndRules checks that an older copy of the store brings back neither an agent's token nor a
// host's rule that its user withdrew. The users of the copy create new tokens, and set the rule again.
func TestCopyWithdrawsTokensAndRules(t *testing.T) {
	srv := sshd.Start(t, sshd.Options{})
	o := testkit.Options{Dir: t.TempDir(), Settings: []string{"TERMINAL=on", "TERMINAL_HOSTS=" + srv.Addr}}
	h := &onHost{proved: deployWith(t, o), srv: srv}
	h.host, h.terminal = h.addHost("ana", map[string]any{"autoRun": "read_only", "readPaths": []string{"/srv"}})
	g := h.gives("ana", "My editor")
	valid := func() int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, h.Base+"/mcp",
			strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		got, err := (&http.Client{Transport: bearing(g.token)}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = got.Body.Close()
		return got.StatusCode
	}
	if code := valid(); code != http.StatusOK {
		t.Fatalf("the new token gets %d, want 200", code)
	}
	before := copyStore(t, o.Dir)
	h.wants("the revocation", h.call("DELETE", "/api/agent/tokens/"+g.tokenID, ""), http.StatusOK, "")
	h.wants("the host's new rule", h.call("POST", "/api/agent/hosts/"+h.host, `{"autoRun":"none"}`), http.StatusOK, "")
	h.restart(o, func() { before.putBack(t, o.Dir) })
	if code := valid(); code != http.StatusUnauthorized {
		t.Errorf("the revoked token gets %d, want 401", code)
	}
	if hosts := h.call("GET", "/api/agent/hosts", "").Body; !strings.Contains(string(hosts), `"autoRun":"none"`) {
		t.Errorf("the host's rule is valid again: %s", hosts)
	}
	h.wants("the host's rule", h.call("POST", "/api/agent/hosts/"+h.host, `{"autoRun":"read_only"}`), http.StatusOK, "")
	h.gives("ana", "My editor")
	h.restart(o, func() {}) // the same copy withdraws nothing again
	for path, want := range map[string]string{"/api/agent/hosts": `"autoRun":"read_only"`,
		"/api/agent/tokens": "My editor"} {
		if got := h.call("GET", path, "").Body; !strings.Contains(string(got), want) {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
}

// TestRestartWithoutRestore checks that a normal restart, and the first start of a release that detects older copies,
// do not ask any user again.
func TestRestartWithoutRestore(t *testing.T) {
	o := testkit.Options{Dir: t.TempDir()}
	w := deployWith(t, o)
	for _, beside := range []string{"", "countersign.db.newest"} {
		w.mail()
		r := w.ask()
		w.decide(r, "approve_once")
		before := len(w.Effects())
		w.restart(o, func() {
			if beside != "" {
				if err := os.Remove(filepath.Join(o.Dir, beside)); err != nil {
					t.Fatal(err)
				}
			}
		})
		w.deliver()
		w.sent(before + 1)
	}
}

// decide decides the only waiting call.
func (w *proved) decide(r testkit.Answer, decision string) {
	w.t.Helper()
	if len(r.Approvals) != 1 {
		w.t.Fatalf("%d approvals wait: %s", len(r.Approvals), r.Body)
	}
	if got, err := w.Resolve(w.t.Context(), "ana", r.Approvals[0], decision); err != nil || got.HTTP != 200 {
		w.t.Fatalf("%v %s; want got.HTTP 200", err, got.Body)
	}
}

// sent checks the number of effects.
func (w *proved) sent(want int) {
	w.t.Helper()
	if got := len(w.Effects()); got != want {
		w.t.Fatalf("%d effects took place, want %d: %v", got, want, w.Effects())
	}
}
