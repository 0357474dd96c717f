package kmskey_test

import (
	"bytes"
	"crypto/ed25519"
	"strings"
	"testing"

	"cloud.google.com/go/kms/apiv1/kmspb"

	"github.com/countersign-run/countersign/shared/base/kmskey"
	"github.com/countersign-run/countersign/shared/testkit/cleanup"
	"github.com/countersign-run/countersign/shared/testkit/fakekms"
)

func start(t *testing.T) *fakekms.Service {
	t.Helper()
	service, err := fakekms.Start(bytes.Repeat([]byte("k"), ed25519.SeedSize))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(service.Close)
	return service
}

// open returns the service's key.
func open(t *testing.T, service *fakekms.Service, version string) *kmskey.Key {
	t.Helper()
	key, err := kmskey.Open(t.Context(), version, service.Client()...)
	return cleanup.Close(t, key, err)
}

func TestSign(t *testing.T) {
	service := start(t)
	key := open(t, service, "gcp-kms://"+fakekms.Version)
	if asked, _ := service.Calls(); asked != 0 {
		t.Error("Cloud KMS was asked before the key was used")
	}
	for range 2 {
		data := []byte("a message")
		signature, err := key.Sign(t.Context(), data)
		if err != nil || !ed25519.Verify(service.Public(), data, signature) {
			t.Fatal(err)
		}
	}
	if asked, made := service.Calls(); asked != 1 || made != 2 {
		t.Errorf("the public key was requested %d times for %d signatures", asked, made)
	}
	for _, bad := range []string{"", strings.TrimSuffix(fakekms.Version, "/cryptoKeyVersions/1"), "gcp-kms://",
		strings.Replace(fakekms.Version, "Versions", "", 1)} {
		if _, err := kmskey.Open(t.Context(), bad, service.Client()...); err == nil {
			t.Errorf("%q is accepted as a version's name", bad)
		}
	}
}

// TestChecksums alters the answers of Cloud KMS. They must not be accepted.
func TestChecksums(t *testing.T) {
	service := start(t)
	for what, alter := range map[string]func(*kmspb.PublicKey, *kmspb.AsymmetricSignResponse){
		"the public key": func(p *kmspb.PublicKey, _ *kmspb.AsymmetricSignResponse) { p.Pem += " " },
		"its checksum":   func(p *kmspb.PublicKey, _ *kmspb.AsymmetricSignResponse) { p.PemCrc32C = nil },
		"another key":    func(p *kmspb.PublicKey, _ *kmspb.AsymmetricSignResponse) { p.Name += "1" },
		"no key": func(p *kmspb.PublicKey, _ *kmspb.AsymmetricSignResponse) {
			p.Pem, p.PemCrc32C = "", fakekms.Checksum(nil)
		},
		"another algorithm": func(p *kmspb.PublicKey, _ *kmspb.AsymmetricSignResponse) { p.Algorithm = 12 },
		"the data":          func(_ *kmspb.PublicKey, s *kmspb.AsymmetricSignResponse) { s.VerifiedDataCrc32C = false },
		"the signer":        func(_ *kmspb.PublicKey, s *kmspb.AsymmetricSignResponse) { s.Name += "1" },
		"no checksum":       func(_ *kmspb.PublicKey, s *kmspb.AsymmetricSignResponse) { s.SignatureCrc32C = nil },
		"the signature": func(_ *kmspb.PublicKey, s *kmspb.AsymmetricSignResponse) {
			if len(s.Signature) > 0 {
				s.Signature[0] ^= 1
				s.SignatureCrc32C = fakekms.Checksum(s.Signature)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			service.Alter = alter
			key := open(t, service, fakekms.Version)
			if signature, err := key.Sign(t.Context(), []byte("a message")); err == nil {
				t.Errorf("%x is accepted", signature)
			}
		})
	}
}
