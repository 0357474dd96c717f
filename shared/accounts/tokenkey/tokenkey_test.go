package tokenkey_test

import (
	"context"
	"encoding/base64"
	"hash/crc32"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"cloud.google.com/go/kms/apiv1/kmspb"
	"github.com/tink-crypto/tink-go/v2/tink"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/countersign-run/countersign/shared/accounts/tokenkey"
	"github.com/countersign-run/countersign/shared/testkit/cleanup"
)

func TestLocalKeptKey(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	ciphers := make([]tink.AEADWithContext, 4)
	var wg sync.WaitGroup
	for n := range ciphers {
		wg.Go(func() {
			c, err := tokenkey.Local(dir)
			if err != nil {
				t.Error(err)
			}
			ciphers[n] = c
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	sealed, err := ciphers[0].EncryptWithContext(t.Context(), []byte("secret"), []byte("u1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range ciphers {
		if got, err := c.DecryptWithContext(t.Context(), sealed, []byte("u1")); err != nil || string(got) != "secret" {
			t.Errorf("several processes have several keys: %q, %v", got, err)
		}
		if _, err := c.DecryptWithContext(t.Context(), sealed, []byte("u2")); err == nil {
			t.Error("it opens for another user")
		}
	}
	info, err := os.Stat(filepath.Join(dir, tokenkey.File))
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the key file has mode %v", info.Mode().Perm())
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("the directory holds %v (%v)", entries, err)
	}
}

func TestParse(t *testing.T) {
	dir := t.TempDir()
	made, err := tokenkey.Local(dir)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, tokenkey.File))
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := made.EncryptWithContext(t.Context(), []byte("secret"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, form := range map[string]string{
		"JSON": string(text), "with a line end": string(text) + "\n", "base64": base64.StdEncoding.EncodeToString(text),
	} {
		c, err := tokenkey.Parse(form)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, err := c.DecryptWithContext(t.Context(), sealed, nil); err != nil || string(got) != "secret" {
			t.Errorf("%s: %q, %v; want got “secret”", name, got, err)
		}
	}
	const hmac = `{"primaryKeyId":1,"key":[{"keyData":{"typeUrl":"type.googleapis.com/google.crypto.tink.HmacKey","keyMaterialType":"SYMMETRIC","value":"EgQIAxAQGiCbFI+JlHbDqCdcTdwWTfTDPDYt0VfmpHe8SpQc5hTNjg=="},"outputPrefixType":"RAW","keyId":1,"status":"ENABLED"}]}`
	for name, bad := range map[string]string{"empty": "", "a password": "hunter2hunter2",
		"half": string(text[:len(text)/2]), "no keys": `{"primaryKeyId":1,"key":[]}`, "not for AEAD": hmac} {
		_, err := tokenkey.Parse(bad)
		if err == nil {
			t.Errorf("%s: is accepted", name)
		} else if bad != "" && strings.Contains(err.Error(), bad) {
			t.Errorf("%s: the error repeats the key: %v", name, err)
		}
	}
}

const kmsKey = "projects/p/locations/global/keyRings/agent/cryptoKeys/tokens"

// keyService implements Cloud KMS's gRPC API with one key.
type keyService struct {
	kmspb.UnimplementedKeyManagementServiceServer
	key  tink.AEADWithContext
	hang atomic.Bool
	// alter changes an answer on its way; nil changes none
	alter func(*kmspb.EncryptResponse, *kmspb.DecryptResponse)
}

func crc(b []byte) *wrapperspb.Int64Value {
	return wrapperspb.Int64(int64(crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))))
}

func (s *keyService) Encrypt(ctx context.Context, r *kmspb.EncryptRequest) (*kmspb.EncryptResponse, error) {
	if r.Name != kmsKey {
		return nil, status.Error(codes.NotFound, "no such key")
	}
	sealed, err := s.key.EncryptWithContext(ctx, r.Plaintext, r.AdditionalAuthenticatedData)
	res := &kmspb.EncryptResponse{Name: r.Name + "/cryptoKeyVersions/1", Ciphertext: sealed,
		CiphertextCrc32C:                          crc(sealed),
		VerifiedPlaintextCrc32C:                   r.PlaintextCrc32C.GetValue() == crc(r.Plaintext).Value,
		VerifiedAdditionalAuthenticatedDataCrc32C: r.AdditionalAuthenticatedDataCrc32C != nil}
	if s.alter != nil {
		s.alter(res, &kmspb.DecryptResponse{})
	}
	return res, err
}

func (s *keyService) Decrypt(ctx context.Context, r *kmspb.DecryptRequest) (*kmspb.DecryptResponse, error) {
	if s.hang.Load() {
		<-ctx.Done()
		return nil, status.FromContextError(ctx.Err()).Err()
	}
	plain, err := s.key.DecryptWithContext(ctx, r.Ciphertext, r.AdditionalAuthenticatedData)
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, "decryption failed")
	}
	res := &kmspb.DecryptResponse{Plaintext: plain, PlaintextCrc32C: crc(plain)}
	if s.alter != nil {
		s.alter(&kmspb.EncryptResponse{}, res)
	}
	return res, nil
}

func TestCloudKMS(t *testing.T) {
	key, err := tokenkey.Local(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	service := &keyService{key: key}
	srv := grpc.NewServer()
	kmspb.RegisterKeyManagementServiceServer(srv, service)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = srv.Serve(listener) }()
	t.Cleanup(srv.Stop)
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	cleanup.Close(t, conn, err)
	here := option.WithGRPCConn(conn) // Tink's client has no Close
	for _, name := range []string{kmsKey, "gcp-kms://" + kmsKey} {
		c, err := tokenkey.KMS(t.Context(), name, here)
		if err != nil {
			t.Fatal(err)
		}
		sealed, err := c.EncryptWithContext(t.Context(), []byte("secret"), []byte("u1|google"))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.DecryptWithContext(t.Context(), sealed, []byte("u1|google")); err != nil ||
			string(got) != "secret" {
			t.Errorf("got %q, %v; want got “secret”", got, err)
		}
		if _, err := c.DecryptWithContext(t.Context(), sealed, []byte("u2|google")); err == nil {
			t.Error("it opens for another user")
		}
		service.hang.Store(true)
		soon, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		if _, err := c.DecryptWithContext(soon, sealed, []byte("u1|google")); err == nil {
			t.Error("a key service that does not answer")
		}
		cancel()
		service.hang.Store(false)
	}
	damaged(t, service, here)
	for _, bad := range []string{"", "projects/p", "gcp-kms://", "aws-kms://arn:aws:kms:x",
		strings.Replace(kmsKey, "cryptoKeys", "keys", 1)} {
		if _, err := tokenkey.KMS(t.Context(), bad, here); err == nil {
			t.Errorf("%q is accepted as a key's name", bad)
		}
	}
}

// damaged alters the answers of Cloud KMS. They must not be accepted.
func damaged(t *testing.T, service *keyService, here option.ClientOption) {
	c, err := tokenkey.KMS(t.Context(), kmsKey, here)
	if err != nil {
		t.Fatal(err)
	}
	sealed, err := c.EncryptWithContext(t.Context(), []byte("secret"), []byte("u1"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { service.alter = nil }()
	for what, alter := range map[string]func(*kmspb.EncryptResponse, *kmspb.DecryptResponse){
		"the ciphertext": func(e *kmspb.EncryptResponse, d *kmspb.DecryptResponse) {
			e.Ciphertext, d.Plaintext = append(e.Ciphertext, 0), append(d.Plaintext, 0)
		},
		"no checksum": func(e *kmspb.EncryptResponse, d *kmspb.DecryptResponse) {
			e.CiphertextCrc32C, d.PlaintextCrc32C = nil, nil
		},
		"another plaintext was received": func(e *kmspb.EncryptResponse, d *kmspb.DecryptResponse) {
			e.VerifiedPlaintextCrc32C, d.PlaintextCrc32C = false, crc(nil)
		},
		"other associated data was received": func(e *kmspb.EncryptResponse, d *kmspb.DecryptResponse) {
			e.VerifiedAdditionalAuthenticatedDataCrc32C, d.Plaintext = false, nil
		},
		"another key": func(e *kmspb.EncryptResponse, d *kmspb.DecryptResponse) {
			e.Name, d.PlaintextCrc32C = "projects/x", crc([]byte("x"))
		},
	} {
		service.alter = alter
		if _, err := c.EncryptWithContext(t.Context(), []byte("secret"), []byte("u1")); err == nil {
			t.Errorf("%s: it is taken for encrypted", what)
		}
		if got, err := c.DecryptWithContext(t.Context(), sealed, []byte("u1")); err == nil {
			t.Errorf("%s: it is taken for %q", what, got)
		}
	}
}
