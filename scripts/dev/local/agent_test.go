package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

const editorsPort = "http://127.0.0.1:4711/callback"

// consents acts as the user's browser: it opens the consent page that a program sends its user to, and submits the form
// with an answer.
func (u *served) consents(page, answer string) url.Values {
	u.t.Helper()
	at, form, _ := strings.Cut(page, "?")
	q, err := url.ParseQuery(form)
	if err != nil {
		u.t.Fatal(err)
	}
	if shown, err := http.Get(page); err != nil || shown.StatusCode != http.StatusOK || shown.Body.Close() != nil {
		u.t.Fatalf("the page: %v, %v", shown, err)
	}
	for name, value := range map[string]string{"uid": "ana", "email": "ana@example.com", "answer": answer} {
		q.Set(name, value)
	}
	r, err := http.NewRequestWithContext(u.t.Context(), http.MethodPost, at, strings.NewReader(q.Encode()))
	if err != nil {
		u.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := http.DefaultTransport.RoundTrip(r) // the transport does not follow redirects
	if err != nil {
		u.t.Fatal(err)
	}
	defer res.Body.Close()
	back, err := res.Location()
	if err != nil || !strings.HasPrefix(back.String(), editorsPort+"?") {
		u.t.Fatalf("%d to %v, %v", res.StatusCode, back, err)
	}
	return back.Query()
}

// connects connects a program that knows only the address of /mcp. Its user gives the answer on the consent page.
func (u *served) connects(answer string) (session *mcp.ClientSession, back url.Values, err error) {
	u.t.Helper()
	fetch := func(_ context.Context, a *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
		back = u.consents(a.URL, answer)
		if !back.Has("code") {
			return nil, errors.New(back.Get("error"))
		}
		return &auth.AuthorizationResult{Code: back.Get("code"), State: back.Get("state"), Iss: back.Get("iss")}, nil
	}
	registers := &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
		ClientName: "My Editor", RedirectURIs: []string{editorsPort}}}
	oauth, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		DynamicClientRegistrationConfig: registers, AuthorizationCodeFetcher: fetch})
	if err != nil {
		u.t.Fatal(err)
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "editor", Version: "1"}, nil)
	session, err = client.Connect(u.t.Context(), &mcp.StreamableClientTransport{Endpoint: u.base + "/mcp",
		OAuthHandler: oauth, DisableStandaloneSSE: true}, nil)
	if err == nil {
		u.t.Cleanup(func() { _ = session.Close() })
	}
	return session, back, err
}

// TestAgentAuthorization gives a program only the address of /mcp. The program finds the local issuer, registers, gets
// the user's consent, and requests an e-mail. The approval waits, and names the program.
func TestAgentAuthorization(t *testing.T) {
	u := serve(t)
	session, _, err := u.connects("yes")
	if err != nil {
		t.Fatal(err)
	}
	res, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "gmail_send", Arguments: map[string]any{
		"to": []string{"bob@example.com"}, "subject": "Lunch", "body": "At noon."}})
	if err != nil || res.IsError {
		t.Fatalf("%+v, %v", res, err)
	}
	var waits struct {
		Approvals []struct {
			Findings json.RawMessage
		}
	}
	u.call(http.MethodGet, "/api/agent/approvals/pending", nil, &waits)
	if len(waits.Approvals) != 1 || !strings.Contains(string(waits.Approvals[0].Findings), `"text":"My-Editor-`) {
		t.Errorf("pending approvals: %+v", waits)
	}
}

// TestAgentAuthorizationRefused checks that a program gets no authorization code if its user refuses.
func TestAgentAuthorizationRefused(t *testing.T) {
	u := serve(t)
	_, back, err := u.connects("no")
	if err == nil || back.Get("error") != "access_denied" || back.Has("code") {
		t.Errorf("the program got %v: %v", back, err)
	}
}
