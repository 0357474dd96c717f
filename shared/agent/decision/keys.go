package decision

import (
	"bytes"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"strings"
)

// MaxKeys is the maximum number of public keys of a ring.
const MaxKeys = 50

var errKeys = fmt.Errorf("decision: expected 1 to %d public Ed25519 keys in PEM, or their DER in base64 with commas "+
	"between them", MaxKeys)

// ParseKeys parses public keys: PEM blocks of the type PUBLIC KEY, as Cloud KMS returns them, or the base64 text of
// those blocks with commas between them. It returns the keys by their IDs.
func ParseKeys(text string) (map[string]ed25519.PublicKey, error) {
	blocks, err := split(text)
	if err != nil {
		return nil, err
	}
	keys := map[string]ed25519.PublicKey{}
	for _, der := range blocks {
		parsed, err := x509.ParsePKIXPublicKey(der)
		public, ok := parsed.(ed25519.PublicKey)
		if err != nil || !ok {
			return nil, errKeys
		}
		keys[KeyID(public)] = public
	}
	if len(keys) == 0 || len(keys) > MaxKeys {
		return nil, errKeys
	}
	return keys, nil
}

// split returns the DER of each key.
func split(text string) (blocks [][]byte, err error) {
	if !strings.HasPrefix(strings.TrimSpace(text), "-----BEGIN ") {
		for one := range strings.SplitSeq(text, ",") {
			der, err := base64.StdEncoding.DecodeString(strings.TrimSpace(one))
			if err != nil {
				return nil, errKeys
			}
			blocks = append(blocks, der)
		}
		return blocks, nil
	}
	for rest := []byte(text); len(bytes.TrimSpace(rest)) > 0; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil || block.Type != "PUBLIC KEY" {
			return nil, errKeys
		}
		blocks = append(blocks, block.Bytes)
	}
	return blocks, nil
}

// FormatKey returns a public key as [ParseKeys] reads it: its DER in base64.
func FormatKey(public ed25519.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(public)
	return base64.StdEncoding.EncodeToString(der), err
}
