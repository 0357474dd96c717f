package google_test

import (
	"encoding/json"
	"testing"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/store"
)

// change changes fields of the user's link in the store.
func (w *env) change(uid string, fields map[string]any) {
	w.t.Helper()
	docs, err := w.store.Get(w.t.Context(), "connections/u_"+uid)
	if err != nil {
		w.t.Fatal(err)
	}
	var l map[string]any
	if err := json.Unmarshal(docs[0].Data, &l); err != nil {
		w.t.Fatal(err)
	}
	for name, v := range fields {
		l[name] = v
	}
	data, err := json.Marshal(l)
	if err == nil {
		_, err = w.store.Commit(w.t.Context(), store.Update(docs[0].Path, docs[0].Version, docs[0].Fields, data))
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// TestTokenBoundToAccount changes the account in the document of a link. Its tokens can then be used neither by a new
// process nor by the one that has an access token in memory.
func TestTokenBoundToAccount(t *testing.T) {
	for name, fields := range map[string]map[string]any{
		"address":              {"email": "eve@example.com"},
		"account":              {"account": "other"},
		"subject":              {"subject": "1"},
		"as of an old release": {"bound": false, "email": "eve@example.com"},
	} {
		w := newEnv(t)
		warm := w.instance()
		w.linked(warm, "u1", "one@example.com", compose)
		w.client(warm, "u1")
		w.change("u1", fields)
		if _, err := clientOf(t.Context(), warm, "u1", compose); !fault.Is(err, fault.Tool, "token_key") {
			t.Errorf("another %s, with a token in memory: %v; want token_key", name, err)
		}
		if _, err := clientOf(t.Context(), w.instance(), "u1", compose); !fault.Is(err, fault.Tool, "token_key") {
			t.Errorf("another %s: %v; want token_key", name, err)
		}
	}
}

// TestLinkOfReleaseBefore uses a link whose token an earlier release encrypted for its user only. A rotation of the
// token keeps that form, so that the earlier release can still read it.
func TestLinkOfReleaseBefore(t *testing.T) {
	w := newEnv(t)
	w.provider.rotating = true
	w.linked(w.instance(), "u1", "one@example.com", compose)
	for token := range w.provider.refresh { // the only one
		refresh, err := w.cipher.EncryptWithContext(t.Context(), []byte(token), []byte("u1|google"))
		if err != nil {
			t.Fatal(err)
		}
		w.change("u1", map[string]any{"bound": false, "refresh": refresh})
	}
	if account, _, err := w.ask(w.client(w.instance(), "u1")); err != nil || account != "one@example.com" {
		t.Errorf("the token is of %q, %v; want one@example.com", account, err)
	}
	docs, err := w.store.Get(t.Context(), "connections/u_u1")
	if err != nil {
		t.Fatal(err)
	}
	var l struct{ Refresh []byte }
	if err := json.Unmarshal(docs[0].Data, &l); err != nil {
		t.Fatal(err)
	}
	token, err := w.cipher.DecryptWithContext(t.Context(), l.Refresh, []byte("u1|google"))
	if err != nil || w.provider.refresh[string(token)] == nil {
		t.Errorf("after a rotation, the release before reads %q, %v; want the newest token", token, err)
	}
}
