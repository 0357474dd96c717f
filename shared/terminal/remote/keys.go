package remote

import (
	"crypto/rsa"
	"encoding/base64"
	"errors"

	"golang.org/x/crypto/ssh"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/terminal"
)

// minRSA is the minimum length of an RSA host key, in bits.
const minRSA = 2048

// hostKeyAlgorithms returns the algorithms with which a host can prove that it has a key of this type. It returns none
// for types that are not accepted. RSA keys need SHA-2.
func hostKeyAlgorithms(keyType string) []string {
	switch keyType {
	case ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521:
		return []string{keyType}
	case ssh.KeyAlgoRSA:
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	}
	return nil
}

// formatOf returns the key type that an algorithm belongs to.
func formatOf(algorithm string) string {
	if algorithm == ssh.KeyAlgoRSASHA256 || algorithm == ssh.KeyAlgoRSASHA512 {
		return ssh.KeyAlgoRSA
	}
	return algorithm
}

// weak reports whether a key is too short to identify a host.
func weak(key ssh.PublicKey) bool {
	c, ok := key.(ssh.CryptoPublicKey)
	if !ok {
		return false
	}
	r, ok := c.CryptoPublicKey().(*rsa.PublicKey)
	return ok && r.N.BitLen() < minRSA
}

// HostKey returns a host's key in the form that its user sees and confirms.
func HostKey(key ssh.PublicKey) terminal.HostKey {
	return terminal.HostKey{Type: key.Type(), SHA256: ssh.FingerprintSHA256(key),
		Key: base64.StdEncoding.EncodeToString(key.Marshal())}
}

// parseKeys parses stored keys of hosts and authorities. Only their bytes matter; type and fingerprint are for people.
func parseKeys(pinned []terminal.HostKey) (keys []ssh.PublicKey, err error) {
	for _, k := range pinned {
		raw, err := base64.StdEncoding.DecodeString(k.Key)
		if err != nil {
			return nil, fault.Invalid("hostKeys", "a key is not base64")
		}
		key, err := ssh.ParsePublicKey(raw)
		if err != nil || len(hostKeyAlgorithms(key.Type())) == 0 || weak(key) {
			return nil, fault.Invalid("hostKeys", "a key is not a host key")
		}
		keys = append(keys, key)
	}
	return keys, nil
}

// parseSigner parses a secret that is a private key. An RSA key signs with SHA-2 only.
func parseSigner(secret []byte) (ssh.Signer, error) {
	signer, err := ssh.ParsePrivateKey(secret)
	if err != nil {
		return nil, errors.New("remote: a stored private key cannot be read") // the error may quote the key
	}
	if s, ok := signer.(ssh.AlgorithmSigner); ok && signer.PublicKey().Type() == ssh.KeyAlgoRSA {
		return ssh.NewSignerWithAlgorithms(s, hostKeyAlgorithms(ssh.KeyAlgoRSA))
	}
	return signer, nil
}
