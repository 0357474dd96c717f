package issuer_test

import (
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"

	"github.com/countersign-run/countersign/shared/testkit/issuer"
)

// TestTokensPassDiscovery verifies tokens with go-oidc, which is independent of this package and finds the keys by
// discovery.
func TestTokensPassDiscovery(t *testing.T) {
	for _, path := range []string{"", "/dev/issuer"} {
		t.Run("path "+path, func(t *testing.T) {
			srv := httptest.NewUnstartedServer(nil)
			key, err := issuer.NewKey()
			if err != nil {
				t.Fatal(err)
			}
			iss, err := issuer.New("http://"+srv.Listener.Addr().String()+path, key, time.Now)
			if err != nil {
				t.Fatal(err)
			}
			srv.Config.Handler = iss
			srv.Start()
			defer srv.Close()

			provider, err := oidc.NewProvider(t.Context(), iss.URL())
			if err != nil {
				t.Fatal(err)
			}
			user, err := iss.Token("u1", "u1@example.com", "app", time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			push, err := iss.PushToken("push@p.iam.gserviceaccount.com", "resume")
			if err != nil {
				t.Fatal(err)
			}
			for audience, token := range map[string]string{"app": user, "resume": push} {
				if _, err := provider.Verifier(&oidc.Config{ClientID: audience}).Verify(t.Context(),
					token); err != nil {
					t.Errorf("the token for %s: %v", audience, err)
				}
			}
			expired, err := iss.Token("u1", "", "app", -time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := provider.Verifier(&oidc.Config{ClientID: "app"}).Verify(t.Context(), expired); err == nil {
				t.Error("a token with a negative lifetime is accepted")
			}
		})
	}
}

func TestKeyKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	ids := make([]string, 4)
	var wg sync.WaitGroup
	for n := range ids {
		wg.Go(func() {
			key, err := issuer.OpenKey(dir)
			if err != nil {
				t.Error(err)
				return
			}
			ids[n] = issuer.KeyID(key)
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id != ids[0] {
			t.Fatalf("several processes got several keys: %v", ids)
		}
	}
	info, err := os.Stat(filepath.Join(dir, issuer.KeyFile))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the key file has mode %v, and 0600 is required", info.Mode().Perm())
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.pem.*")); len(left) > 0 {
		t.Errorf("temporary files are left behind: %v", left)
	}
}

func TestKeyDamaged(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, issuer.KeyFile)
	if err := os.WriteFile(path, []byte("not a key"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := issuer.OpenKey(dir); err == nil {
		t.Error("a damaged key file is accepted")
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "not a key" {
		t.Errorf("the file was changed to %q (%v)", text, err)
	}
}

func TestAddressRefused(t *testing.T) {
	key, err := issuer.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	for _, bad := range []string{"", "127.0.0.1:8080", "http://127.0.0.1:8080/"} {
		if _, err := issuer.New(bad, key, time.Now); err == nil {
			t.Errorf("%q is accepted as an issuer", bad)
		}
	}
}
