package app_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/api"
	"github.com/countersign-run/countersign/shared/testkit"
)

// TestAllowedDomains uses an issuer at which anyone can sign up. A user without a verified address in the configured
// domains is refused on every route for users, even for their own data, and leaves no trace.
func TestAllowedDomains(t *testing.T) {
	e := newEndpoint(t)
	w := withActions(t, e, "AUTH_ALLOWED_DOMAINS=acme.example,b.example")
	w.mail()
	const ask = `{"prompt":"please do it"}`
	anas := map[string]any{"email": "ana@acme.example", "email_verified": true}
	if err := w.SignedIn(t.Context(), "ana", w.token(anas)); err != nil {
		t.Fatal(err)
	}
	asked := w.with(anas, "POST", runPath, ask)
	if asked.HTTP != http.StatusOK || len(asked.Approvals) != 1 {
		t.Fatalf("%d %s; want asked.HTTP %v, len(asked.Approvals) 1", asked.HTTP, asked.Body, http.StatusOK)
	}
	card := asked.Approvals[0]
	decide := `{"approvalId":"` + card.ApprovalID + `","decision":"approve_once","argsHash":"` + card.ArgsHash + `"}`
	bodies := map[string]string{runPath: ask, streamPath: ask, chatPath: helloPage,
		"/api/agent/approvals/resolve": decide,
		"/api/agent/chat/results":      `{"results":[]}`}
	path := strings.NewReplacer("{runId}", asked.RunID, "{threadId}", asked.ThreadID, "{name}", "cart.note",
		"{entryId}", "an-entry")

	for name, claims := range map[string]map[string]any{
		"another domain":               {"email": "ana@evil.example", "email_verified": true},
		"another, which the hd denies": {"email": "ana@evil.example", "email_verified": true, "hd": "acme.example"},
		"a subdomain":                  {"email": "ana@mail.acme.example", "email_verified": true},
		"a longer domain":              {"email": "ana@evilacme.example", "email_verified": true},
		"two at signs":                 {"email": "ana@evil.example@acme.example", "email_verified": true},
		"no address":                   {"email_verified": true},
		"not verified":                 {"email": "ana@acme.example", "email_verified": false, "hd": "acme.example"},
		"no word about verifying":      {"email": "ana@acme.example"},
		"verified in a string":         {"email": "ana@acme.example", "email_verified": "true"},
	} {
		for _, f := range api.Functions {
			for _, route := range f.Routes {
				if calledWithoutAUser[route.Path] {
					continue
				}
				a := w.with(claims, route.Method, path.Replace(route.Path), bodies[route.Path])
				if a.HTTP != http.StatusForbidden || a.Error.Class != "AuthError" || a.Error.Code != "forbidden" ||
					strings.Contains(a.Error.Message, ".example") {
					t.Errorf("%s, %s %s: %d %s", name, route.Method, route.Path, a.HTTP, a.Body)
				}
			}
		}
	}
	w.deliver()
	if len(w.Google.Messages()) > 0 || len(e.requests()) > 0 || len(w.Gemini.Requests()) != 1 {
		t.Errorf("%d e-mails, %d calls of actions, %d of the model", len(w.Google.Messages()), len(e.requests()),
			len(w.Gemini.Requests()))
	}

	// The same user may use any spelling of an address in either domain, whatever Google says about their Workspace.
	for name, claims := range map[string]map[string]any{
		"as before":          anas,
		"capitals":           {"email": "Ana@ACME.Example", "email_verified": true},
		"the other domain":   {"email": "ana@b.example", "email_verified": true},
		"the hd of a parent": {"email": "ana@b.example", "email_verified": true, "hd": "holding.example"},
	} {
		if a := w.with(claims, "GET", "/api/agent/approvals/pending", ""); a.HTTP != http.StatusOK ||
			len(a.Approvals) != 1 {
			t.Errorf("%s: %d %s; want a.HTTP %v, len(a.Approvals) 1", name, a.HTTP, a.Body, http.StatusOK)
		}
		if a := w.with(claims, "GET", path.Replace("/api/agent/runs/{runId}"),
			""); a.Status != "awaiting_confirmation" {
			t.Errorf("%s: %d %s; want a.Status “awaiting_confirmation”", name, a.HTTP, a.Body)
		}
	}
	capitals := map[string]any{"email": "ana@B.EXAMPLE", "email_verified": true}
	if a := w.with(capitals, "POST", "/api/agent/approvals/resolve", decide); a.HTTP != http.StatusOK {
		t.Errorf("the yes: %d %s", a.HTTP, a.Body)
	}
	w.deliver()
	if a := w.with(anas, "GET", path.Replace("/api/agent/runs/{runId}"), ""); a.Status != "completed" ||
		len(w.Google.Messages()) != 1 {
		t.Errorf("%s, with %d e-mails", a.Body, len(w.Google.Messages()))
	}
}

// calledWithoutAUser are the routes that need no user's ID token: those that Google's services call, the redirect from
// Google's consent, the WebSocket, whose first message has the token (auth.Verifier.Token, as for all others), the
// public keys of receipts, and the one for tokens of agents.
var calledWithoutAUser = map[string]bool{"/api/agent/resume": true, "/api/agent/resume-terminal": true,
	"/api/agent/resume-plan": true, "/api/agent/notify": true, "/api/agent/notify/{webhook}": true,
	"/api/agent/sweep": true, "/api/agent/connections/google/callback": true,
	"/api/agent/connections/github/callback":   true,
	"/api/agent/terminals/{terminalId}/socket": true, "/.well-known/jwks.json": true,
	"/mcp": true, "/.well-known/oauth-protected-resource": true, "/.well-known/oauth-protected-resource/mcp": true}

// with sends a request as ana, with these claims about her address.
func (w *proved) with(address map[string]any, method, path, body string) testkit.Answer {
	w.t.Helper()
	a, err := testkit.Connect(nil, w.Base, w.token(address))(w.t.Context(), method, path, body)
	if err != nil {
		w.t.Fatal(err)
	}
	return a
}

// token returns a token of ana's with these claims about her address.
func (w *proved) token(address map[string]any) string {
	w.t.Helper()
	now := time.Now()
	claims := map[string]any{"iss": w.Issuer.URL(), "aud": testkit.Audience, "sub": "ana", "iat": now.Unix(),
		"exp": now.Add(time.Hour).Unix()}
	maps.Copy(claims, address)
	token, err := w.Issuer.Sign(claims)
	if err != nil {
		w.t.Fatal(err)
	}
	return token
}
