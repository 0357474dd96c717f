// Package kmskey signs with a Cloud KMS key version. The private key never leaves Cloud KMS.
package kmskey

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"hash/crc32"
	"strings"
	"sync"

	kms "cloud.google.com/go/kms/apiv1"
	"cloud.google.com/go/kms/apiv1/kmspb"
	"google.golang.org/api/option"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Key is a Cloud KMS key version with the algorithm EC_SIGN_ED25519.
type Key struct {
	client *kms.KeyManagementClient
	name   string

	mu     sync.Mutex
	public ed25519.PublicKey // nil until it was requested
}

// errDamaged means that a request or an answer was altered in transit
// (docs.cloud.google.com/kms/docs/data-integrity-guidelines).
var errDamaged = errors.New("kmskey: data from or to Cloud KMS does not match its checksum")

// Open returns a key version. version has the form projects/P/locations/L/keyRings/R/cryptoKeys/K/cryptoKeyVersions/V,
// with or without the prefix gcp-kms://. The first use makes the first request.
func Open(ctx context.Context, version string, opts ...option.ClientOption) (*Key, error) {
	name := strings.TrimPrefix(version, "gcp-kms://")
	if p := strings.Split(name, "/"); len(p) != 10 || p[0] != "projects" || p[8] != "cryptoKeyVersions" {
		return nil, fmt.Errorf("kmskey: %q is not projects/P/locations/L/keyRings/R/cryptoKeys/K/"+
			"cryptoKeyVersions/V", version)
	}
	client, err := kms.NewKeyManagementClient(ctx, opts...)
	if err != nil {
		return nil, fmt.Errorf("kmskey: Cloud KMS: %w", err)
	}
	return &Key{client: client, name: name}, nil
}

// Close closes the connection to Cloud KMS.
func (k *Key) Close() error { return k.client.Close() }

// Public returns the public key. It asks Cloud KMS once.
func (k *Key) Public(ctx context.Context) (ed25519.PublicKey, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.public != nil {
		return k.public, nil
	}
	res, err := k.client.GetPublicKey(ctx, &kmspb.GetPublicKeyRequest{Name: k.name})
	if err != nil {
		return nil, fmt.Errorf("kmskey: Cloud KMS: %w", err)
	}
	if res.Name != k.name || res.PemCrc32C.GetValue() != checksum([]byte(res.Pem)).Value {
		return nil, errDamaged
	}
	block, _ := pem.Decode([]byte(res.Pem))
	if block == nil || res.Algorithm != kmspb.CryptoKeyVersion_EC_SIGN_ED25519 {
		return nil, errors.New("kmskey: the key of Cloud KMS does not sign with EC_SIGN_ED25519")
	}
	parsed, err := x509.ParsePKIXPublicKey(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("kmskey: the public key of Cloud KMS: %w", err)
	}
	public, ok := parsed.(ed25519.PublicKey)
	if !ok {
		return nil, errors.New("kmskey: the public key of Cloud KMS is not an Ed25519 key")
	}
	k.public = public
	return public, nil
}

// Sign signs data with Cloud KMS, and verifies the signature with the public key.
func (k *Key) Sign(ctx context.Context, data []byte) ([]byte, error) {
	public, err := k.Public(ctx)
	if err != nil {
		return nil, err
	}
	res, err := k.client.AsymmetricSign(ctx, &kmspb.AsymmetricSignRequest{Name: k.name, Data: data,
		DataCrc32C: checksum(data)})
	if err != nil {
		return nil, fmt.Errorf("kmskey: Cloud KMS: %w", err)
	}
	if !res.VerifiedDataCrc32C || res.Name != k.name || !ed25519.Verify(public, data, res.Signature) ||
		res.SignatureCrc32C.GetValue() != checksum(res.Signature).Value {
		return nil, errDamaged
	}
	return res.Signature, nil
}

func checksum(b []byte) *wrapperspb.Int64Value {
	return wrapperspb.Int64(int64(crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))))
}
