package sshd

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"os"

	"golang.org/x/crypto/ssh"
)

func (s *Server) clientKey() {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	check(s.t, err)
	s.Key = marshal(s.t, private)
	authorized, err := ssh.NewPublicKey(public)
	check(s.t, err)
	check(s.t, os.WriteFile(s.path("authorized_keys"), ssh.MarshalAuthorizedKey(authorized), 0o600))
	check(s.t, os.WriteFile(s.path("client_key"), s.Key, 0o600))
}

// KeyFile returns the path of the private key that may log in, for OpenSSH's own client.
func (s *Server) KeyFile() string { return s.path("client_key") }

// Authorize allows another key to log in.
func (s *Server) Authorize(key ssh.PublicKey) {
	s.t.Helper()
	f, err := os.OpenFile(s.path("authorized_keys"), os.O_APPEND|os.O_WRONLY, 0)
	check(s.t, err)
	_, err = f.Write(ssh.MarshalAuthorizedKey(key))
	check(s.t, errors.Join(err, f.Close()))
}

// NewHostKeys gives the server other host keys from the next Restart on.
func (s *Server) NewHostKeys() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.oldKeys, s.hostKeys = s.hostKeys, nil
	for _, kind := range s.types {
		if s.oldKeys != nil {
			check(s.t, os.Rename(s.path("host_"+kind), s.path("old_"+kind)))
		}
		private := generate(s.t, kind)
		public, err := ssh.NewPublicKey(private.Public())
		check(s.t, err)
		s.hostKeys = append(s.hostKeys, public)
		check(s.t, os.WriteFile(s.path("host_"+kind), marshal(s.t, private), 0o600))
	}
}

// OldHostKeys undoes NewHostKeys from the next Restart on.
func (s *Server) OldHostKeys() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hostKeys = s.oldKeys
	for _, kind := range s.types {
		check(s.t, os.Rename(s.path("old_"+kind), s.path("host_"+kind)))
	}
}

// HostKeys returns the server's host keys, in the order of Options.HostKeys.
func (s *Server) HostKeys() []ssh.PublicKey {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]ssh.PublicKey(nil), s.hostKeys...)
}

// generate returns a private key of a type.
func generate(t T, kind string) crypto.Signer {
	t.Helper()
	var key crypto.Signer
	var err error
	switch kind {
	case "ed25519":
		_, key, err = ed25519.GenerateKey(rand.Reader)
	case "ecdsa":
		key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "rsa":
		key, err = rsa.GenerateKey(rand.Reader, 2048)
	default:
		t.Fatalf("sshd: host keys of type %q are not known", kind)
	}
	check(t, err)
	return key
}

func marshal(t T, key crypto.PrivateKey) []byte {
	t.Helper()
	block, err := ssh.MarshalPrivateKey(key, "")
	check(t, err)
	return pem.EncodeToMemory(block)
}
