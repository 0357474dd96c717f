package config

import (
	"encoding/base64"
	"encoding/json"
	"strings"
)

const (
	receiptKey = "the 32 bytes of an Ed25519 private key in base64 (head -c 32 /dev/urandom | base64)"
	receiptKMS = "projects/P/locations/L/keyRings/R/cryptoKeys/K/cryptoKeyVersions/V"
	jwks       = "a JWK Set of 1 to 50 public Ed25519 keys in JSON (or that in base64), as `ops receipt-keys` prints it"
)

// receipts reads the key that signs receipts, and the public keys that verify them.
func (l *loader) receipts(c *Config) {
	c.ReceiptKey = l.secret("RECEIPT_KEY", receiptKey, isReceiptKey)
	c.ReceiptKMSKey = l.text("RECEIPT_KMS_KEY", "", receiptKMS, isKMSVersion)
	c.ReceiptJWKS = l.jwks("RECEIPT_JWKS")
	if c.ReceiptKMSKey != "" && c.ReceiptKey.IsSet() {
		l.fail("RECEIPT_KEY", show(l.get("RECEIPT_KEY"), true),
			"to be unset where RECEIPT_KMS_KEY is set: only one of them can be meant")
	}
	l.require(c.ReceiptKMSKey != "" || l.deployed && c.ReceiptKey.IsSet(), "RECEIPT_JWKS", jwks)
}

// jwks reads public keys and returns them as JSON. It does not check for placeholders, because the braces of JSON look
// like one.
func (l *loader) jwks(name string) string {
	l.declare(variable{name: name, needs: jwks})
	v := l.get(name)
	if v == "" {
		return ""
	}
	text := []byte(v)
	if decoded, err := base64.StdEncoding.DecodeString(v); err == nil {
		text = decoded
	}
	var set struct {
		Keys []struct {
			Type string  `json:"kty"`
			D    *string `json:"d"`
		} `json:"keys"`
	}
	bad := len(v) > 64<<10 || json.Unmarshal(text, &set) != nil || len(set.Keys) == 0 || len(set.Keys) > 50
	for _, k := range set.Keys {
		bad = bad || k.Type != "OKP" || k.D != nil
	}
	if bad {
		l.fail(name, show(v, true), jwks)
		return ""
	}
	l.keep(name, string(text))
	return string(text)
}

// maxVapidKeys is the maximum number of keys in VAPID_KEY.
const maxVapidKeys = 4

func isVapidKeys(v string) bool {
	keys := strings.Split(v, ",")
	for _, one := range keys {
		key, err := base64.RawURLEncoding.DecodeString(strings.TrimSpace(one))
		if err != nil || len(key) != 32 {
			return false
		}
	}
	return len(keys) <= maxVapidKeys
}

func isReceiptKey(v string) bool {
	key, err := base64.StdEncoding.DecodeString(v)
	return err == nil && len(key) == 32
}

var isKMSVersion = matches(`^(gcp-kms://)?projects/[^/\s*]+/locations/[^/\s*]+/keyRings/[^/\s*]+/cryptoKeys/[^/\s*]+/` +
	`cryptoKeyVersions/[0-9]+$`)
