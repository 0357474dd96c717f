package hosts

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rsa"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/ssh"

	"github.com/countersign-run/countersign/shared/base/fault"
	"github.com/countersign-run/countersign/shared/terminal"
)

// at returns the JSON path of a field in an element of a list.
func at(list string, i int, field ...string) string {
	return strings.Join(append([]string{fmt.Sprintf("%s[%d]", list, i)}, field...), ".")
}

// minRSA is the minimum length of an RSA key, in bits.
const minRSA = 2048

// hostKeyTypes are the allowed types of host keys.
var hostKeyTypes = map[string]bool{ssh.KeyAlgoED25519: true, ssh.KeyAlgoECDSA256: true, ssh.KeyAlgoECDSA384: true,
	ssh.KeyAlgoECDSA521: true, ssh.KeyAlgoRSA: true}

// checkHostKeys checks that the type and the fingerprint of each confirmed key match the key itself.
func checkHostKeys(keys []terminal.HostKey) error {
	seen := map[string]bool{}
	for i, k := range keys {
		wire, err := base64.StdEncoding.DecodeString(k.Key)
		key, parseErr := ssh.ParsePublicKey(wire)
		switch {
		case err != nil || parseErr != nil || !hostKeyTypes[key.Type()]:
			return fault.Invalid(at("hostKeys", i, "key"), "this is not a public key of type ssh-ed25519, "+
				"ecdsa-sha2-nistp256, -384, -521 or ssh-rsa in base64")
		case k.Type != key.Type():
			return fault.Invalid(at("hostKeys", i, "type"), "the key is of type %s", key.Type())
		case k.SHA256 != ssh.FingerprintSHA256(key):
			return fault.Invalid(at("hostKeys", i, "sha256"), "the key's fingerprint is %s",
				ssh.FingerprintSHA256(key))
		case bits(key) < minRSA:
			return fault.Invalid(at("hostKeys", i, "key"), "an RSA key of fewer than %d bits is refused", minRSA)
		case seen[k.SHA256]:
			return fault.Invalid(at("hostKeys", i), "duplicate key")
		}
		seen[k.SHA256] = true
	}
	return nil
}

// bits returns the length of an RSA key, and minRSA for any other key.
func bits(key ssh.PublicKey) int {
	if c, ok := key.(ssh.CryptoPublicKey); ok {
		if r, ok := c.CryptoPublicKey().(*rsa.PublicKey); ok {
			return r.N.BitLen()
		}
	}
	return minRSA
}

// secretOf returns the secret to store for the login, and the public key for the host's authorized_keys. A password
// has no public key.
func (h *Hosts) secretOf(in terminal.NewAuth, hostID string) (secret []byte, public string, err error) {
	if err := checkFields(in); err != nil {
		return nil, "", err
	}
	switch in.Kind {
	case terminal.AuthGenerated:
		_, key, err := ed25519.GenerateKey(h.cfg.Rand)
		if err != nil {
			return nil, "", err
		}
		return storedKey(key, hostID)
	case terminal.AuthPrivateKey:
		key, err := parseKey(*in.PrivateKey, in.Passphrase)
		if err != nil {
			return nil, "", err
		}
		return storedKey(key, hostID)
	}
	return []byte(*in.Password), "", nil
}

// checkFields checks that the login has exactly the fields that its kind needs.
func checkFields(in terminal.NewAuth) error {
	fields := []struct {
		name  string
		value *string
		kind  terminal.AuthKind
		need  bool
		most  int
	}{
		{"auth.privateKey", in.PrivateKey, terminal.AuthPrivateKey, true, maxPrivateKey},
		{"auth.passphrase", in.Passphrase, terminal.AuthPrivateKey, false, maxPassword},
		{"auth.password", in.Password, terminal.AuthPassword, true, maxPassword},
	}
	switch in.Kind {
	case terminal.AuthGenerated, terminal.AuthPrivateKey, terminal.AuthPassword:
	default:
		return fault.Invalid("auth.kind", "must be generated, privateKey or password")
	}
	for _, f := range fields {
		switch {
		case f.value != nil && f.kind != in.Kind:
			return fault.Invalid(f.name, "only allowed for the kind %s", f.kind)
		case f.value == nil && f.need && f.kind == in.Kind:
			return fault.Invalid(f.name, "required for the kind %s", f.kind)
		case f.value == nil:
		case *f.value == "" || len(*f.value) > f.most:
			return fault.Invalid(f.name, "must have 1 to %d bytes", f.most)
		case strings.ContainsRune(*f.value, 0) || !utf8.ValidString(*f.value):
			return fault.Invalid(f.name, "not text")
		}
	}
	return nil
}

// maxRounds is the maximum number of hash rounds for the passphrase of a private key. ssh-keygen uses 16 or 24. A key
// with many more rounds could keep a function busy.
const maxRounds = 128

// parseKey parses a private key with its passphrase. No error quotes either.
func parseKey(text string, passphrase *string) (key any, err error) {
	if rounds(text) > maxRounds {
		return nil, fault.Invalid("auth.privateKey", "its passphrase is hashed more than %d times (ssh-keygen -a)",
			maxRounds)
	}
	var locked *ssh.PassphraseMissingError
	if key, err = ssh.ParseRawPrivateKey([]byte(text)); errors.As(err, &locked) {
		if passphrase == nil {
			return nil, fault.Invalid("auth.passphrase", "the private key has a passphrase; send it too")
		}
		if key, err = ssh.ParseRawPrivateKeyWithPassphrase([]byte(text), []byte(*passphrase)); err != nil {
			return nil, fault.Invalid("auth.passphrase", "wrong passphrase for the private key")
		}
	} else if err == nil && passphrase != nil {
		return nil, fault.Invalid("auth.passphrase", "the private key has no passphrase")
	}
	if err != nil {
		return nil, fault.Invalid("auth.privateKey", "not a private key in PEM, as ssh-keygen writes it")
	}
	if k, ok := key.(*ed25519.PrivateKey); ok {
		key = *k
	}
	return key, nil
}

// rounds returns the number of hash rounds for the passphrase of a key in OpenSSH's form (PROTOCOL.key).
func rounds(text string) uint32 {
	const magic = "openssh-key-v1\x00"
	block, _ := pem.Decode([]byte(text))
	if block == nil || !bytes.HasPrefix(block.Bytes, []byte(magic)) {
		return 0
	}
	var head struct {
		Cipher, KDF, Options string
		Rest                 []byte `ssh:"rest"`
	}
	var options struct {
		Salt   string
		Rounds uint32
	}
	if ssh.Unmarshal(block.Bytes[len(magic):], &head) != nil || head.KDF != "bcrypt" ||
		ssh.Unmarshal([]byte(head.Options), &options) != nil {
		return 0
	}
	return options.Rounds
}

// storedKey returns a private key in the form that is stored, which is OpenSSH's without a passphrase, and its public
// half as a line of authorized_keys with a comment that describes its purpose.
func storedKey(key any, hostID string) (secret []byte, public string, err error) {
	refused := fault.Invalid("auth.privateKey", "must be a key of type Ed25519, ECDSA or RSA (of at least %d bits)",
		minRSA)
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil || !hostKeyTypes[signer.PublicKey().Type()] || bits(signer.PublicKey()) < minRSA {
		return nil, "", refused
	}
	comment := "countersign-" + hostID
	block, err := ssh.MarshalPrivateKey(key, comment)
	if err != nil {
		return nil, "", refused
	}
	line := strings.TrimSuffix(string(ssh.MarshalAuthorizedKey(signer.PublicKey())), "\n")
	return pem.EncodeToMemory(block), line + " " + comment, nil
}
