package main

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

const editorsPort = "http://127.0.0.1:4711/callback"

// consents is the user's browser: it opens the page that a program is sent to, and sends its form with an answer.
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
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	defer browser.CloseIdleConnections()
	res, err := browser.PostForm(at, q)
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

// TestAProgramComesByItself gives a program the address of /mcp and nothing else: it finds the local issuer, registers,
// has its user agree, and asks for a mail, which waits under its name.
func TestAProgramComesByItself(t *testing.T) {
	u := serve(t)
	oauth, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			ClientName: "My Editor", RedirectURIs: []string{editorsPort}}},
		AuthorizationCodeFetcher: func(_ context.Context, a *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			q := u.consents(a.URL, "yes")
			return &auth.AuthorizationResult{Code: q.Get("code"), State: q.Get("state"), Iss: q.Get("iss")}, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	session, err := mcp.NewClient(&mcp.Implementation{Name: "editor", Version: "1"}, nil).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: u.base + "/mcp", OAuthHandler: oauth, DisableStandaloneSSE: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
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
		t.Errorf("what waits: %+v", waits)
	}
}

// TestAUserRefusesAProgram has the program come back with nothing.
func TestAUserRefusesAProgram(t *testing.T) {
	u := serve(t)
	oauth, err := auth.NewAuthorizationCodeHandler(&auth.AuthorizationCodeHandlerConfig{
		DynamicClientRegistrationConfig: &auth.DynamicClientRegistrationConfig{Metadata: &oauthex.ClientRegistrationMetadata{
			RedirectURIs: []string{editorsPort}}},
		AuthorizationCodeFetcher: func(_ context.Context, a *auth.AuthorizationArgs) (*auth.AuthorizationResult, error) {
			q := u.consents(a.URL, "no")
			if q.Get("error") != "access_denied" || q.Has("code") {
				t.Errorf("it comes back with %v", q)
			}
			return nil, context.Canceled
		}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = mcp.NewClient(&mcp.Implementation{Name: "editor", Version: "1"}, nil).Connect(t.Context(),
		&mcp.StreamableClientTransport{Endpoint: u.base + "/mcp", OAuthHandler: oauth, DisableStandaloneSSE: true}, nil)
	if err == nil {
		t.Error("it connects without its user's yes")
	}
}
