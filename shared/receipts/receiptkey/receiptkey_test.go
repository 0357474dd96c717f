package receiptkey_test

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"hash/crc32"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"cloud.google.com/go/kms/apiv1/kmspb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/countersign-run/countersign/shared/receipts/receipt"
	"github.com/countersign-run/countersign/shared/receipts/receiptkey"
)

func TestLocalKeyIsMadeOnceAndKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	ids := make([]string, 4)
	var wg sync.WaitGroup
	for n := range ids {
		wg.Go(func() {
			signer, err := receiptkey.Open(t.Context(), receiptkey.Config{Dir: dir})
			if err != nil {
				t.Error(err)
				return
			}
			key, err := signer.Public(t.Context())
			if err != nil {
				t.Error(err)
			}
			ids[n] = key.ID
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id == "" || id != ids[0] {
			t.Errorf("several processes have several keys: %v", ids)
		}
	}
	info, err := os.Stat(filepath.Join(dir, receiptkey.File))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if err := os.WriteFile(filepath.Join(dir, receiptkey.File), []byte("CANARY"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := receiptkey.Local(dir); err == nil || strings.Contains(err.Error(), "CANARY") {
		t.Errorf("a damaged key: %v", err)
	}
}

const version = "projects/p/locations/l/keyRings/r/cryptoKeys/k/cryptoKeyVersions/1"

// keyService is the part of Cloud KMS that signs.
type keyService struct {
	kmspb.UnimplementedKeyManagementServiceServer
	key   ed25519.PrivateKey
	asked int // for the public key
	alter func(*kmspb.PublicKey, *kmspb.AsymmetricSignResponse)
}

func (s *keyService) GetPublicKey(_ context.Context, r *kmspb.GetPublicKeyRequest) (*kmspb.PublicKey, error) {
	s.asked++
	if r.Name != version {
		return nil, status.Error(codes.NotFound, "no such key")
	}
	der, err := x509.MarshalPKIXPublicKey(s.key.Public())
	if err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	res := &kmspb.PublicKey{Name: r.Name, Pem: string(text), PemCrc32C: crc(text),
		Algorithm: kmspb.CryptoKeyVersion_EC_SIGN_ED25519}
	if s.alter != nil {
		s.alter(res, &kmspb.AsymmetricSignResponse{})
	}
	return res, nil
}

func (s *keyService) AsymmetricSign(_ context.Context, r *kmspb.AsymmetricSignRequest) (
	*kmspb.AsymmetricSignResponse, error) {
	if r.Name != version || r.Digest != nil || len(r.Data) == 0 || len(r.Data) > 64<<10 {
		return nil, status.Error(codes.InvalidArgument, "pure Ed25519 takes data of at most 64 KiB")
	}
	signature := ed25519.Sign(s.key, r.Data)
	res := &kmspb.AsymmetricSignResponse{Name: r.Name, Signature: signature, SignatureCrc32C: crc(signature),
		VerifiedDataCrc32C: r.DataCrc32C.GetValue() == crc(r.Data).Value}
	if s.alter != nil {
		s.alter(&kmspb.PublicKey{}, res)
	}
	return res, nil
}

func crc(b []byte) *wrapperspb.Int64Value {
	return wrapperspb.Int64(int64(crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))))
}

// serveKMS serves the part of Cloud KMS by its own protocol.
func serveKMS(t *testing.T, service *keyService) option.ClientOption {
	t.Helper()
	srv := grpc.NewServer()
	kmspb.RegisterKeyManagementServiceServer(srv, service)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = srv.Serve(listener) }()
	t.Cleanup(srv.Stop)
	conn, err := grpc.NewClient(listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return option.WithGRPCConn(conn)
}

func TestCloudKMS(t *testing.T) {
	service := &keyService{key: ed25519.NewKeyFromSeed([]byte(strings.Repeat("k", 32)))}
	here := serveKMS(t, service)
	signer, err := receiptkey.KMS(t.Context(), "gcp-kms://"+version, here)
	if err != nil {
		t.Fatal(err)
	}
	if service.asked != 0 {
		t.Error("it is asked before it is used")
	}
	for range 2 {
		file, err := receipt.Issue(t.Context(), signer, receipt.Receipt{RunID: "r"})
		if err != nil {
			t.Fatal(err)
		}
		key := receipt.KeyOf(service.key.Public().(ed25519.PublicKey))
		if got, why := receipt.Verify(file, receipt.Keys{Keys: []receipt.Key{key}}); got != receipt.True {
			t.Errorf("%s: %s", got, why)
		}
	}
	if service.asked != 1 {
		t.Errorf("the public key was asked for %d times", service.asked)
	}
	for _, bad := range []string{"", strings.TrimSuffix(version, "/cryptoKeyVersions/1"), "gcp-kms://",
		strings.Replace(version, "Versions", "", 1)} {
		if _, err := receiptkey.KMS(t.Context(), bad, here); err == nil {
			t.Errorf("%q is accepted as a version's name", bad)
		}
	}
}

// TestCloudKMSIsHeldToItsChecksums alters the answers of Cloud KMS. They must not be accepted.
func TestCloudKMSIsHeldToItsChecksums(t *testing.T) {
	service := &keyService{key: ed25519.NewKeyFromSeed([]byte(strings.Repeat("k", 32)))}
	here := serveKMS(t, service)
	for what, alter := range map[string]func(*kmspb.PublicKey, *kmspb.AsymmetricSignResponse){
		"the public key": func(p *kmspb.PublicKey, _ *kmspb.AsymmetricSignResponse) { p.Pem += " " },
		"its checksum":   func(p *kmspb.PublicKey, _ *kmspb.AsymmetricSignResponse) { p.PemCrc32C = nil },
		"another key":    func(p *kmspb.PublicKey, _ *kmspb.AsymmetricSignResponse) { p.Name += "1" },
		"no key": func(p *kmspb.PublicKey, _ *kmspb.AsymmetricSignResponse) {
			p.Pem, p.PemCrc32C = "", crc(nil)
		},
		"another algorithm": func(p *kmspb.PublicKey, _ *kmspb.AsymmetricSignResponse) { p.Algorithm = 12 },
		"the data":          func(_ *kmspb.PublicKey, s *kmspb.AsymmetricSignResponse) { s.VerifiedDataCrc32C = false },
		"the signer":        func(_ *kmspb.PublicKey, s *kmspb.AsymmetricSignResponse) { s.Name += "1" },
		"no checksum":       func(_ *kmspb.PublicKey, s *kmspb.AsymmetricSignResponse) { s.SignatureCrc32C = nil },
		"the signature": func(_ *kmspb.PublicKey, s *kmspb.AsymmetricSignResponse) {
			if len(s.Signature) > 0 {
				s.Signature[0] ^= 1
				s.SignatureCrc32C = crc(s.Signature)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			service.alter = alter
			signer, err := receiptkey.KMS(t.Context(), version, here)
			if err != nil {
				t.Fatal(err)
			}
			if file, err := receipt.Issue(t.Context(), signer, receipt.Receipt{RunID: "r"}); err == nil {
				t.Errorf("it is taken: %s", file)
			}
		})
	}
}
