package gemini_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/countersign-run/countersign/shared/agent/model"
	"github.com/countersign-run/countersign/shared/agent/model/gemini"
	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/testkit/fakegemini"
)

// TestVertexCredentials authenticates like a deployment: with Application Default Credentials of a service account, a
// token from its token server, and a request with that token.
func TestVertexCredentials(t *testing.T) {
	fake := answering(fakegemini.Turn{Text: "hi"})
	ts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/token":
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, `{"access_token":"from-the-token-server","token_type":"Bearer","expires_in":3600}`)
		case r.Header.Get("Authorization") != "Bearer from-the-token-server" || r.Header.Get("x-goog-api-key") != "":
			http.Error(w, fakegemini.ErrorBody(401, "no token"), http.StatusUnauthorized)
		default:
			fake.ServeHTTP(w, r)
		}
	}))
	defer ts.Close()
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", serviceAccount(t, ts.URL+"/token"))

	m, err := gemini.New(context.Background(),
		gemini.Config{APIKey: "not-used", VertexProject: "p-1", VertexLocation: "europe-west1", VertexEndpoint: ts.URL})
	if err != nil {
		t.Fatal(err)
	}
	reply, err := m.Generate(context.Background(), model.Request{Contents: hello}, nil)
	if err != nil || reply.Text != "hi" || !fake.Requests()[0].Vertex {
		t.Fatalf("%+v, %v", reply, err)
	}
}

func TestVertexWithoutCredentials(t *testing.T) {
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", filepath.Join(t.TempDir(), "none.json"))
	if _, err := gemini.New(context.Background(), gemini.Config{VertexProject: "p"}); !fault.Is(err, fault.Validation,
		"invalid") {
		t.Fatal(err)
	}
}

func serviceAccount(t *testing.T, tokenURL string) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(map[string]string{
		"type": "service_account", "project_id": "p-1", "private_key_id": "1",
		"client_email": "agent@p-1.iam.gserviceaccount.com", "client_id": "1",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), "token_uri": tokenURL,
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "account.json")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
