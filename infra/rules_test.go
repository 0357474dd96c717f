package infra_test

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/countersign-run/countersign/shared/testkit/emulators"
)

// database is a Firestore emulator as a browser sees it: over REST, with a user's token and under rules.
type database struct{ base string }

// with returns a project of the emulator under the rules.
func with(t *testing.T, project, rules string) database {
	t.Helper()
	base := "http://" + emulators.Firestore(t)
	body, err := json.Marshal(
		map[string]any{"rules": map[string]any{
			"files": []map[string]string{{"name": "firestore.rules", "content": rules}}}})
	if err != nil {
		t.Fatal(err)
	}
	if status, text := send(t, "PUT", base+"/emulator/v1/projects/"+project+":securityRules", "owner",
		string(body)); status != http.StatusOK {
		t.Fatalf("the emulator does not take the rules: %d %s", status, text)
	}
	return database{base + "/v1/projects/" + project + "/databases/(default)/documents"}
}

func send(t *testing.T, method, url, token, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, 64<<10))
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

// userToken returns a token like a signed-in user's browser's. The emulator reads its claims and checks no signature.
func userToken(t *testing.T, project, uid string) string {
	t.Helper()
	part := func(v any) string {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(text)
	}
	now := time.Now().Unix()
	return part(map[string]string{"alg": "none", "typ": "JWT"}) + "." +
		part(map[string]any{"iss": "https://securetoken.google.com/" + project, "aud": project,
			"sub": uid, "user_id": uid, "iat": now, "auth_time": now, "exp": now + 3600}) + "."
}

const anyDocument = `{"fields":{"uid":{"stringValue":"ana"},"data":{"stringValue":"{}"}}}`

// TestClientsReachNothing requests a user's own documents from a browser, under the deployed rules.
func TestClientsReachNothing(t *testing.T) {
	const project = "demo-rules-deny"
	text, err := os.ReadFile("firestore.rules")
	if err != nil {
		t.Fatal(err)
	}
	db := with(t, project, string(text))
	if status, text := send(t, "PATCH", db.base+"/runs/a", "owner", anyDocument); status != http.StatusOK {
		t.Fatalf("the functions cannot write: %d %s", status, text)
	}
	const query = `{"structuredQuery":{"from":[{"collectionId":"runs"}],"where":{"fieldFilter":{"field":{"fieldPath":"uid"},"op":"EQUAL","value":{"stringValue":"ana"}}}}}`
	for who, token := range map[string]string{"nobody": "", "a user": userToken(t, project, "ana")} {
		for _, c := range []struct{ method, path, body string }{
			{"GET", "/runs/a", ""}, {"GET", "/runs", ""}, {"POST", ":runQuery", query},
			{"PATCH", "/runs/a", anyDocument},
			{"PATCH", "/runs/b", anyDocument},
			{"DELETE", "/runs/a", ""}, {"GET", "/users/ana", ""}, {"PATCH", "/anything/ana/below/x", anyDocument},
		} {
			status, text := send(t, c.method, db.base+c.path, token, c.body)
			if status != http.StatusForbidden || !strings.Contains(text, "PERMISSION_DENIED") {
				t.Errorf("%s, %s %s: %d %s; want status %v, text with “PERMISSION_DENIED”",
					who, c.method, c.path, status, text, http.StatusForbidden)
			}
		}
	}
	if status, _ := send(t, "GET", db.base+"/runs/a", "owner", ""); status != http.StatusOK {
		t.Errorf("the functions' document is gone: %d", status)
	}
}

// TestRulesInEmulator checks that the test above can fail: rules that allow access give access.
func TestRulesInEmulator(t *testing.T) {
	const project = "demo-rules-allow"
	db := with(t, project, `service cloud.firestore { match /databases/{d}/documents { match /runs/{r} { allow read: if resource.data.uid == request.auth.uid; } } }`)
	if status, text := send(t, "PATCH", db.base+"/runs/a", "owner", anyDocument); status != http.StatusOK {
		t.Fatalf("%d %s; want status %v", status, text, http.StatusOK)
	}
	if status, text := send(t, "GET", db.base+"/runs/a", userToken(t, project, "ana"), ""); status != http.StatusOK {
		t.Errorf("the owner: %d %s", status, text)
	}
	if status, _ := send(t, "GET", db.base+"/runs/a", userToken(t, project, "ben"),
		""); status != http.StatusForbidden {
		t.Errorf("somebody else: %d", status)
	}
}
