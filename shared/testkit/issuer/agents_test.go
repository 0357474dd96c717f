package issuer_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/countersign-run/countersign/shared/testkit/issuer"
)

const resource = "http://127.0.0.1:8080/mcp"

// agentServer serves an issuer whose programs are in a file, with a clock that the test moves.
func agentServer(t *testing.T, file string, now *time.Time) *issuer.Issuer {
	t.Helper()
	srv := httptest.NewUnstartedServer(nil)
	key, err := issuer.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	iss, err := issuer.New("http://"+srv.Listener.Addr().String()+"/dev/issuer", key,
		func() time.Time { return *now })
	if err == nil {
		err = iss.ServeAgents(issuer.Agents{Resource: resource, File: file,
			SignedIn: func(string, string) error { return nil }})
	}
	if err != nil {
		t.Fatal(err)
	}
	srv.Config.Handler = iss
	srv.Start()
	t.Cleanup(srv.Close)
	return iss
}

// register registers a program, and returns its id.
func register(t *testing.T, iss *issuer.Issuer, as string) (status int, id string) {
	t.Helper()
	res, err := http.Post(iss.URL()+"/register", "application/json", strings.NewReader(as))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var a struct {
		ID string `json:"client_id"`
	}
	if err := json.NewDecoder(res.Body).Decode(&a); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, a.ID
}

// agentAsks returns the parameters of a program's authorization request.
func agentAsks(id, back string, changes ...string) url.Values {
	q := question(append([]string{"client_id", id, "redirect_uri", back, "resource", resource}, changes...)...)
	q.Del("nonce")
	return q
}

// TestProgramRegistration registers a program. It gets tokens for the resource only, and new ones after they have
// expired.
func TestProgramRegistration(t *testing.T) {
	now := time.Now()
	file := filepath.Join(t.TempDir(), "programs.json")
	iss := agentServer(t, file, &now)
	status, id := register(t, iss, `{"client_name":"My Editor!","redirect_uris":["http://127.0.0.1:1/cb"],"scope":"x"}`)
	if status != http.StatusCreated || !strings.HasPrefix(id, "My-Editor-") {
		t.Fatalf("%d %q; want status %v, id that begins with “My-Editor-”", status, id, http.StatusCreated)
	}
	back := "http://127.0.0.1:4711/cb" // it listens at another port now
	status, to, _ := post(t, iss.URL()+"/authorize", agentAsks(id, back))
	if status != http.StatusSeeOther || !strings.HasPrefix(to.String(), back+"?") ||
		to.Query().Get("iss") != iss.URL() {
		t.Fatalf("%d to %s", status, to)
	}
	form := url.Values{"grant_type": {"authorization_code"}, "client_id": {id}, "redirect_uri": {back},
		"code": {to.Query().Get("code")}, "code_verifier": {verifier}}
	status, _, tokens := post(t, iss.URL()+"/token", form)
	if status != http.StatusOK {
		t.Fatalf("%d %v; want status %v", status, tokens, http.StatusOK)
	}
	provider, err := oidc.NewProvider(t.Context(), iss.URL())
	if err != nil {
		t.Fatal(err)
	}
	check := provider.Verifier(&oidc.Config{ClientID: resource, Now: func() time.Time { return now }})
	verify := func(token any) error {
		got, err := check.Verify(t.Context(), token.(string))
		if err == nil && (got.Subject != "ana" || len(got.Audience) != 1) {
			t.Errorf("%+v", got)
		}
		return err
	}
	if err := verify(tokens["access_token"]); err != nil {
		t.Error(err)
	}
	if verify(tokens["refresh_token"]) == nil {
		t.Error("a refresh token is an access token")
	}
	now = now.Add(2 * time.Hour)
	again := url.Values{"grant_type": {"refresh_token"}, "client_id": {id},
		"refresh_token": {tokens["refresh_token"].(string)}}
	status, _, renewed := post(t, iss.URL()+"/token", again)
	if status != http.StatusOK || verify(renewed["access_token"]) != nil || verify(tokens["access_token"]) == nil {
		t.Errorf("%d %v; want status %v, no error from verify, verify(tokens[\"access_token\"]) set",
			status, renewed, http.StatusOK)
	}
	_, other := register(t, iss, `{"redirect_uris":["http://localhost/cb"]}`)
	for name, wrong := range map[string][2]string{"another program's": {"client_id", other},
		"an access token": {"refresh_token", renewed["access_token"].(string)}, "none": {"refresh_token", ""}} {
		form := url.Values{"grant_type": again["grant_type"], "client_id": again["client_id"],
			"refresh_token": again["refresh_token"]}
		form.Set(wrong[0], wrong[1])
		if status, _, body := post(t, iss.URL()+"/token", form); status != http.StatusBadRequest {
			t.Errorf("%s: %d %v; want status %v", name, status, body, http.StatusBadRequest)
		}
	}
	now = now.Add(31 * 24 * time.Hour)
	if status, _, body := post(t, iss.URL()+"/token", again); status != http.StatusBadRequest {
		t.Errorf("after a month: %d %v", status, body)
	}
	// Another process knows the program.
	iss = agentServer(t, file, &now)
	if status, to, _ := post(t, iss.URL()+"/authorize", agentAsks(id, back)); status != http.StatusSeeOther {
		t.Errorf("%d to %s", status, to)
	}
}

func TestConsentDenied(t *testing.T) {
	now := time.Now()
	iss := agentServer(t, filepath.Join(t.TempDir(), "programs.json"), &now)
	_, id := register(t, iss, `{"client_name":"e","redirect_uris":["https://editor.example/cb?a=1"]}`)
	_, to, _ := post(t, iss.URL()+"/authorize", agentAsks(id, "https://editor.example/cb?a=1", "answer", "no"))
	q := to.Query()
	if q.Get("error") != "access_denied" || q.Get("code") != "" || q.Get("a") != "1" || q.Get("state") != "s1" {
		t.Errorf("to %s", to)
	}
}

func TestCodeNotSent(t *testing.T) {
	now := time.Now()
	iss := agentServer(t, filepath.Join(t.TempDir(), "programs.json"), &now)
	for _, back := range []string{"http://editor.example/cb", "javascript:alert(1)", "https://a@editor.example/",
		"https://editor.example/#x", "", "http://127.0.0.1.evil.example/"} {
		body, err := json.Marshal(map[string]any{"redirect_uris": []string{back}})
		if err != nil {
			t.Fatal(err)
		}
		if status, _ := register(t, iss, string(body)); status != http.StatusBadRequest {
			t.Errorf("%q may register: %d", back, status)
		}
	}
	_, id := register(t, iss, `{"redirect_uris":["http://127.0.0.1/cb","https://editor.example/cb"]}`)
	for name, q := range map[string]url.Values{
		"another path":        agentAsks(id, "http://127.0.0.1/other"),
		"another host":        agentAsks(id, "http://localhost/cb"),
		"another port":        agentAsks(id, "https://editor.example:8443/cb"),
		"another resource":    agentAsks(id, "https://editor.example/cb", "resource", "http://127.0.0.1:8080"),
		"no resource":         agentAsks(id, "https://editor.example/cb", "resource", ""),
		"a token at once":     agentAsks(id, "https://editor.example/cb", "response_type", "id_token"),
		"a program not known": agentAsks("x", "https://editor.example/cb"),
		"no challenge":        agentAsks(id, "https://editor.example/cb", "code_challenge", ""),
	} {
		if status, to, _ := post(t, iss.URL()+"/authorize", q); status != http.StatusBadRequest || to.String() != "" {
			t.Errorf("%s: %d to %q", name, status, to)
		}
	}
}
