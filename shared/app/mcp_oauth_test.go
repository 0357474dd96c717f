package app_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/testkit"
)

// access returns an access token of ana's for /mcp, with changed claims; nil removes one.
func (w *proved) access(changes map[string]any) string {
	w.t.Helper()
	now := time.Now()
	claims := map[string]any{"iss": w.Issuer.URL(), "sub": "ana", "aud": w.Base + "/mcp", "client_id": "editor",
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix()}
	maps.Copy(claims, changes)
	maps.DeleteFunc(claims, func(_ string, v any) bool { return v == nil })
	token, err := w.Issuer.Sign(claims)
	if err != nil {
		w.t.Fatal(err)
	}
	return token
}

const listTools = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`

// asks sends a message to /mcp, and returns the answer.
func (w *proved) asks(token, message string) testkit.Answer {
	w.t.Helper()
	a, err := testkit.Connect(nil, w.Base, token)(w.t.Context(), "POST", "/mcp", message, "Accept",
		"application/json, text/event-stream")
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// TestAccessTokensOfAgents checks that only access tokens for /mcp are accepted there, and that they open nothing else.
func TestAccessTokensOfAgents(t *testing.T) {
	w := deploy(t)
	issuer := w.Issuer.URL()
	if err := w.Stop(); err != nil {
		t.Fatal(err)
	}
	o := testkit.Options{Dir: t.TempDir(), Settings: []string{"MCP_ISSUER=" + issuer}}
	if err := w.Start(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	id, err := w.SignIn(t.Context(), "ana")
	if err != nil {
		t.Fatal(err)
	}
	good := w.access(nil)
	if a := w.asks(good, listTools); a.HTTP != http.StatusOK || !strings.Contains(string(a.Body), "gmail_send") {
		t.Fatalf("a good token: %d %s", a.HTTP, a.Body)
	}
	metadata := w.Base + "/.well-known/oauth-protected-resource/mcp"
	for name, token := range map[string]string{
		"an ID token":             id,
		"none":                    "",
		"for another service":     w.access(map[string]any{"aud": w.Base}),
		"for several":             w.access(map[string]any{"aud": []string{w.Base + "/mcp", w.Base}, "azp": "editor"}),
		"without a client":        w.access(map[string]any{"client_id": nil}),
		"that has expired":        w.access(map[string]any{"exp": time.Now().Add(-time.Hour).Unix()}),
		"of another issuer":       w.access(map[string]any{"iss": "https://login.example"}),
		"of a service account":    w.access(map[string]any{"email": "a@b.iam.gserviceaccount.com"}),
		"of nobody that can be":   w.access(map[string]any{"sub": "../x"}),
		"of a user's own, forged": "cs_agent_YW5h.abcdefghijklmnopqrstuvwxyz.c2VjcmV0",
	} {
		a := w.asks(token, listTools)
		if a.HTTP != http.StatusUnauthorized ||
			!strings.Contains(a.Header.Get("WWW-Authenticate"), `resource_metadata="`+metadata+`"`) {
			t.Errorf("a token %s: %d %s, %s", name, a.HTTP, a.Body, a.Header.Get("WWW-Authenticate"))
		}
	}
	for _, path := range []string{"/api/agent/tokens", "/api/agent/approvals/pending", "/api/agent/threads"} {
		if a, err := testkit.Connect(nil, w.Base, good)(t.Context(), "GET", path, ""); err != nil ||
			a.HTTP != http.StatusUnauthorized {
			t.Errorf("it opens %s: %v, %d %s", path, err, a.HTTP, a.Body)
		}
	}
	a, err := testkit.Connect(nil, w.Base, "")(t.Context(), "GET", strings.TrimPrefix(metadata, w.Base), "")
	if err != nil || string(a.Body) != `{"resource":"`+w.Base+`/mcp","authorization_servers":["`+issuer+
		`"],"bearer_methods_supported":["header"],"resource_name":"Countersign"}`+"\n" {
		t.Errorf("the metadata: %v, %d %s", err, a.HTTP, a.Body)
	}
	mail := `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"gmail_send","arguments":` +
		`{"to":["bob@example.com"],"subject":"s","body":"b"}}}`
	if a = w.asks(good, mail); a.HTTP != http.StatusOK || !strings.Contains(string(a.Body), "awaiting_confirmation") {
		t.Errorf("a call: %d %s", a.HTTP, a.Body)
	}
	if a := w.call("GET", "/api/agent/approvals/pending", ""); !strings.Contains(string(a.Body),
		`"findings":[{"reason":"agent","text":"editor"}]`) {
		t.Errorf("the card: %s", a.Body)
	}
	if _, err := w.App.API.Records.SetDisabled(t.Context(), "ana", true); err != nil {
		t.Fatal(err)
	}
	if a := w.asks(good, listTools); a.HTTP != http.StatusUnauthorized {
		t.Errorf("of a user who is shut out: %d %s", a.HTTP, a.Body)
	}
}

// TestMCPOAuthWithoutIssuer checks that without an issuer there is no metadata, and only tokens that users created are
// accepted.
func TestMCPOAuthWithoutIssuer(t *testing.T) {
	w := deploy(t)
	const metadata = "/.well-known/oauth-protected-resource"
	for _, path := range []string{metadata, metadata + "/mcp"} {
		if a, err := testkit.Connect(nil, w.Base, "")(t.Context(), "GET", path, ""); err != nil ||
			a.HTTP != http.StatusNotFound {
			t.Errorf("%s: %v, %d %s; want a.HTTP %v", path, err, a.HTTP, a.Body, http.StatusNotFound)
		}
	}
	if a := w.asks(w.access(nil), listTools); a.HTTP != http.StatusUnauthorized ||
		a.Header.Get("WWW-Authenticate") != `Bearer realm="countersign"` {
		t.Errorf("%d %s, %s; want a.HTTP %v, a.Header.Get(\"WWW-Authenticate\") %q",
			a.HTTP, a.Body, a.Header.Get("WWW-Authenticate"), http.StatusUnauthorized, `Bearer realm="countersign"`)
	}
}
