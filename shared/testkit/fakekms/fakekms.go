// Package fakekms simulates the part of Cloud KMS that signs with Ed25519, with Cloud KMS's own protocol.
package fakekms

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/pem"
	"hash/crc32"
	"net"
	"sync"

	"cloud.google.com/go/kms/apiv1/kmspb"
	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Version is the name of the only version of the only key.
const Version = "projects/p/locations/l/keyRings/r/cryptoKeys/k/cryptoKeyVersions/1"

// Service is a running service with one key. Set Alter before the first call.
type Service struct {
	kmspb.UnimplementedKeyManagementServiceServer

	// Alter changes an answer before it is sent. Its other argument is empty.
	Alter func(*kmspb.PublicKey, *kmspb.AsymmetricSignResponse)

	key  ed25519.PrivateKey
	addr string
	stop func()

	mu          sync.Mutex
	asked, made int
}

// Start serves the key with the seed of 32 bytes on a loopback address.
func Start(seed []byte) (*Service, error) {
	s := &Service{key: ed25519.NewKeyFromSeed(seed)}
	srv := grpc.NewServer()
	kmspb.RegisterKeyManagementServiceServer(srv, s)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	go func() { _ = srv.Serve(listener) }() // ends with Close
	s.addr, s.stop = listener.Addr().String(), srv.Stop
	return s, nil
}

// Close ends the service.
func (s *Service) Close() { s.stop() }

// Client makes a client use the service.
func (s *Service) Client() []option.ClientOption {
	return []option.ClientOption{option.WithEndpoint(s.addr), option.WithoutAuthentication(),
		option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials()))}
}

// Public returns the key's public half.
func (s *Service) Public() ed25519.PublicKey { return s.key.Public().(ed25519.PublicKey) }

// Calls returns how often the public key was requested, and how many signatures were made.
func (s *Service) Calls() (public, signatures int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked, s.made
}

// GetPublicKey is a method of Cloud KMS.
func (s *Service) GetPublicKey(_ context.Context, r *kmspb.GetPublicKeyRequest) (*kmspb.PublicKey, error) {
	s.mu.Lock()
	s.asked++
	s.mu.Unlock()
	if r.Name != Version {
		return nil, status.Error(codes.NotFound, "no such key")
	}
	der, err := x509.MarshalPKIXPublicKey(s.key.Public())
	if err != nil {
		return nil, err
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	res := &kmspb.PublicKey{Name: r.Name, Pem: string(text), PemCrc32C: Checksum(text),
		Algorithm: kmspb.CryptoKeyVersion_EC_SIGN_ED25519}
	if s.Alter != nil {
		s.Alter(res, &kmspb.AsymmetricSignResponse{})
	}
	return res, nil
}

// AsymmetricSign is a method of Cloud KMS.
func (s *Service) AsymmetricSign(_ context.Context, r *kmspb.AsymmetricSignRequest) (
	*kmspb.AsymmetricSignResponse, error) {
	s.mu.Lock()
	s.made++
	s.mu.Unlock()
	if r.Name != Version || r.Digest != nil || len(r.Data) == 0 || len(r.Data) > 64<<10 {
		return nil, status.Error(codes.InvalidArgument, "pure Ed25519 takes data of at most 64 KiB")
	}
	signature := ed25519.Sign(s.key, r.Data)
	res := &kmspb.AsymmetricSignResponse{Name: r.Name, Signature: signature, SignatureCrc32C: Checksum(signature),
		VerifiedDataCrc32C: r.DataCrc32C.GetValue() == Checksum(r.Data).Value}
	if s.Alter != nil {
		s.Alter(&kmspb.PublicKey{}, res)
	}
	return res, nil
}

// Checksum returns the checksum of b, as Cloud KMS sends it.
func Checksum(b []byte) *wrapperspb.Int64Value {
	return wrapperspb.Int64(int64(crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))))
}
