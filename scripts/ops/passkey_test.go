package main

import (
	"net/http"
	"strings"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/passkey"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/testkit"
	"github.com/countersign-run/countersign/shared/testkit/authenticator"
)

// TestPasskeyByCode adds a passkey with an operator's code, decides with the passkey, and removes it.
func TestPasskeyByCode(t *testing.T) {
	strong, err := testkit.Strong(t.TempDir(), "calls: [{tool: gmail_send}]")
	if err != nil {
		t.Fatal(err)
	}
	w := newDeployment(t, append(strong, "ALLOWED_ORIGINS="+testkit.Console)...)
	add := func(key *authenticator.Key, code string) testkit.Answer {
		t.Helper()
		ana, err := w.As(t.Context(), "ana")
		if err != nil {
			t.Fatal(err)
		}
		challenge, err := ana.PasskeyChallenge(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		a, err := ana(t.Context(), http.MethodPost, "/api/agent/passkeys", map[string]any{"name": "Laptop",
			"code": code, "credential": key.Create(challenge)})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	key := testkit.NewKey()
	if a := add(key, ""); a.Error.Code != "second_factor" {
		t.Errorf("without a code: %d %s, want second_factor", a.HTTP, a.Body)
	}
	if a := add(key, "AAAA-AAAA-AAAA-AAAA"); a.Error.Code != "code_refused" {
		t.Errorf("without an operator: %d %s, want code_refused", a.HTTP, a.Body)
	}
	code, _, _ := strings.Cut(w.prints([]string{testkit.Console + "/#/passkeys"}, "passkey", "code", "ana"), "\n")
	if a := add(key, code); a.HTTP != http.StatusOK {
		t.Fatalf("the code: %d %s", a.HTTP, a.Body)
	}
	if a := add(testkit.NewKey(), code); a.Error.Code != "code_refused" {
		t.Errorf("the code again: %d %s, want code_refused", a.HTTP, a.Body)
	}
	r := w.asks("ana", "gmail_send", testkit.Mail("bob@example.com", "x", "x"))
	if a, err := w.Confirm(t.Context(), "ana", r.Approvals[0], "approve_once", key); err != nil ||
		a.HTTP != http.StatusOK {
		t.Fatalf("%v %d %s", err, a.HTTP, a.Body)
	}
	w.delivers()
	if n := len(w.EffectsOf("ana")); n != 1 {
		t.Errorf("%d e-mails, want 1", n)
	}
	id := passkey.Encode(key.ID)
	w.prints([]string{`{"kind":"passkey","data":{"id":"` + id + `"`}, "export", "ana")
	w.prints([]string{id, "Laptop", "passkeys: 1"}, "passkey", "list", "ana")
	w.prints([]string{"removed"}, "passkey", "remove", "ana", "-id", id)
	w.prints([]string{"passkeys: 0"}, "passkey", "list", "ana")
	w.prints([]string{"problems: 0"}, "verify")
	if err := w.Enrol(t.Context(), "ana", key); err != nil {
		t.Fatal(err)
	}
	w.prints(nil, "delete-user", "ana", "-yes")
	if w.document(document.PasskeysPath("ana")).Exists() {
		t.Error("the user's passkeys were not deleted with the user")
	}
}

// TestWrongCodes types five wrong codes. The right one then counts no more.
func TestWrongCodes(t *testing.T) {
	strong, err := testkit.Strong(t.TempDir(), "alwaysAllow: true")
	if err != nil {
		t.Fatal(err)
	}
	w := newDeployment(t, strong...)
	ana, err := w.As(t.Context(), "ana")
	if err != nil {
		t.Fatal(err)
	}
	code, _, _ := strings.Cut(w.prints(nil, "passkey", "code", "ana"), "\n")
	challenge, err := ana.PasskeyChallenge(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for n := range passkey.MaxTries + 1 {
		typed := "AAAA-AAAA-AAAA-AAAA"
		if n == passkey.MaxTries {
			typed = code
		}
		a, err := ana(t.Context(), http.MethodPost, "/api/agent/passkeys", map[string]any{"code": typed,
			"credential": testkit.NewKey().Create(challenge)})
		if err != nil || a.Error.Code != "code_refused" {
			t.Errorf("try %d: %v %d %s, want code_refused", n+1, err, a.HTTP, a.Body)
		}
	}
}

func TestPasskeyCommandRefused(t *testing.T) {
	w := newDeployment(t)
	if _, _, err := w.ops("passkey", "code", "ana"); err == nil || !strings.Contains(err.Error(), "STRONG_APPROVAL") {
		t.Errorf("without rules: %v", err)
	}
}
