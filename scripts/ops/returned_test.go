package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/store"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit"
)

// hostKey is a public key of a host, with its fingerprint.
var hostKey = map[string]string{"type": "ssh-ed25519",
	"key":    "AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl",
	"sha256": "SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU"}

// TestVerifyReturned revokes each kind of permission, and then restores the earlier copy of its document, as somebody
// with all rights on the store can. verify must name the permission. Before that, and right after the revocation, it
// must find nothing.
func TestVerifyReturned(t *testing.T) {
	for name, c := range map[string]struct {
		give func(*deployment) (path string) // grants the permission, and returns the path of its document
		take func(*deployment)
		want string
	}{
		"a disabled user": {
			func(w *deployment) string { w.mail(true); return document.UserPath("ana") },
			func(w *deployment) { w.prints(nil, "revoke", "ana", "-yes") },
			"the user was disabled, and the document of the user does not say so"},
		"an agent's token": {
			func(w *deployment) string {
				w.answers("POST", "/api/agent/tokens", map[string]string{"name": "editor"})
				return document.UserPath("ana")
			},
			func(w *deployment) {
				w.answers("DELETE", "/api/agent/tokens/"+w.id("/api/agent/tokens", "tokenId"), nil)
			},
			"was revoked, and the document of the user has it"},
		"an entry of the always-allow list": {
			func(w *deployment) string {
				r := w.asks("ana", "gmail_send", testkit.Mail("bob@example.com", "x", "x"))
				w.decides("ana", r, "approve_and_always_allow_recipient")
				w.delivers()
				return document.UserPath("ana")
			},
			func(w *deployment) {
				w.answers("DELETE", "/api/agent/allowlist/"+w.id("/api/agent/allowlist", "id"), nil)
			},
			"was removed, and the document of the user has it"},
		"a passkey": {
			func(w *deployment) string {
				if err := w.Enrol(w.t.Context(), "ana", testkit.NewKey()); err != nil {
					w.t.Fatal(err)
				}
				return document.PasskeysPath("ana")
			},
			func(w *deployment) {
				w.answers("DELETE", "/api/agent/passkeys/"+w.id("/api/agent/passkeys", "id"), nil)
			},
			"was removed, and the document of the user's passkeys has it"},
		"commands on a host": {
			func(w *deployment) string { return w.addsHost("read_only") },
			func(w *deployment) {
				w.answers("POST", "/api/agent/hosts/"+w.id("/api/agent/hosts", "hostId"),
					map[string]string{"autoRun": "none"})
			},
			"none was allowed without approval, and its document says read_only"},
		"a host": {
			func(w *deployment) string { return w.addsHost("none") },
			func(w *deployment) { w.answers("DELETE", "/api/agent/hosts/"+w.id("/api/agent/hosts", "hostId"), nil) },
			"was removed, and its document exists"},
		"an account": {
			func(w *deployment) string { w.mail(true); return document.ConnectionPath("google", "ana") },
			func(w *deployment) { w.answers("DELETE", "/api/agent/connections/google", nil) },
			"the google account was unlinked, and its document exists"},
	} {
		t.Run(name, func(t *testing.T) {
			strong, err := testkit.Strong(t.TempDir(), "calls: [{tool: pay}]")
			if err != nil {
				t.Fatal(err)
			}
			w := newDeployment(t, append(strong, "TERMINAL=on")...)
			path := c.give(w)
			w.prints([]string{"problems: 0"}, "verify")
			before := w.document(path)
			c.take(w)
			w.prints([]string{"problems: 0"}, "verify")
			now := w.document(path)
			back := store.Update(path, now.Version, before.Fields, before.Data)
			if !now.Exists() {
				back = store.Create(path, before.Fields, before.Data)
			}
			if _, err := w.App.Store.Commit(t.Context(), back); err != nil {
				t.Fatal(err)
			}
			if out, errs, err := w.ops("verify"); err != errFailed || !strings.Contains(out, c.want) ||
				!strings.Contains(out, "problems: 1") {
				t.Errorf("verify: %v\n%s%s; want 1 problem: %s", err, out, errs, c.want)
			}
		})
	}
}

func (w *deployment) document(path string) store.Doc {
	w.t.Helper()
	docs, err := w.App.Store.Get(w.t.Context(), path)
	if err != nil {
		w.t.Fatal(err)
	}
	return docs[0]
}

// answers sends a request of Ana's, which must succeed.
func (w *deployment) answers(method, path string, body any) testkit.Answer {
	w.t.Helper()
	ana, err := w.As(w.t.Context(), "ana")
	if err != nil {
		w.t.Fatal(err)
	}
	a, err := ana(w.t.Context(), method, path, body)
	if err != nil || a.HTTP/100 != http.StatusOK/100 {
		w.t.Fatalf("%s %s: %v, %d %s; want 2xx", method, path, err, a.HTTP, a.Body)
	}
	return a
}

// id returns the first ID of a list.
func (w *deployment) id(list, member string) string {
	w.t.Helper()
	body := string(w.answers("GET", list, nil).Body)
	_, rest, found := strings.Cut(body, `"`+member+`":"`)
	id, _, _ := strings.Cut(rest, `"`)
	if !found {
		w.t.Fatalf("%s has no %s: %s", list, member, body)
	}
	return id
}

// addsHost adds a host of Ana's, and returns the path of its document.
func (w *deployment) addsHost(autoRun string) string {
	w.t.Helper()
	w.answers("POST", "/api/agent/hosts", map[string]any{"name": "web", "host": "web.example.com", "username": "ana",
		"hostKeys": []any{hostKey}, "auth": map[string]string{"kind": "generated"}, "autoRun": autoRun})
	return document.HostPath("ana", w.id("/api/agent/hosts", "hostId"))
}
