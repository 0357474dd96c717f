package remote

import (
	"crypto/rsa"
	"encoding/base64"
	"errors"

	"golang.org/x/crypto/ssh"

	"github.com/countersign-run/countersign/shared/fault"
	"github.com/countersign-run/countersign/shared/terminal"
)

// minRSA is the length in bits of a key of RSA below which one proves nothing.
const minRSA = 2048

// hostKeyAlgorithms returns the algorithms with which a host proves that it has a key of the type; none for types by
// which a host cannot be known. With RSA, that is by SHA-2.
func hostKeyAlgorithms(keyType string) []string {
	switch keyType {
	case ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521:
		return []string{keyType}
	case ssh.KeyAlgoRSA:
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	}
	return nil
}

// formatOf returns the type of the keys that an algorithm is for.
func formatOf(algorithm string) string {
	if algorithm == ssh.KeyAlgoRSASHA256 || algorithm == ssh.KeyAlgoRSASHA512 {
		return ssh.KeyAlgoRSA
	}
	return algorithm
}

// weak reports whether a key is too short for a host to be known by it.
func weak(key ssh.PublicKey) bool {
	c, ok := key.(ssh.CryptoPublicKey)
	if !ok {
		return false
	}
	r, ok := c.CryptoPublicKey().(*rsa.PublicKey)
	return ok && r.N.BitLen() < minRSA
}

// HostKey returns a host's key as its user sees and confirms it.
func HostKey(key ssh.PublicKey) terminal.HostKey {
	return terminal.HostKey{Type: key.Type(), SHA256: ssh.FingerprintSHA256(key),
		Key: base64.StdEncoding.EncodeToString(key.Marshal())}
}

// parseKeys reads a host's pinned keys. Their bytes count; the type and the fingerprint beside them are for people.
func parseKeys(pinned []terminal.HostKey) (keys []ssh.PublicKey, err error) {
	for _, k := range pinned {
		raw, err := base64.StdEncoding.DecodeString(k.Key)
		if err != nil {
			return nil, fault.Invalid("hostKeys", "a key is not base64")
		}
		key, err := ssh.ParsePublicKey(raw)
		if err != nil || len(hostKeyAlgorithms(key.Type())) == 0 || weak(key) {
			return nil, fault.Invalid("hostKeys", "a key is not one by which a host can be known")
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, fault.Invalid("hostKeys", "a host is known by at least one key")
	}
	return keys, nil
}

// parseSigner reads a secret that is a private key. With one of RSA it signs with SHA-2 only.
func parseSigner(secret []byte) (ssh.Signer, error) {
	signer, err := ssh.ParsePrivateKey(secret)
	if err != nil {
		return nil, errors.New("remote: a stored private key cannot be read") // the error may quote it
	}
	if s, ok := signer.(ssh.AlgorithmSigner); ok && signer.PublicKey().Type() == ssh.KeyAlgoRSA {
		return ssh.NewSignerWithAlgorithms(s, hostKeyAlgorithms(ssh.KeyAlgoRSA))
	}
	return signer, nil
}
