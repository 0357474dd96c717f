// Package authenticator is a virtual authenticator with one passkey, together with its browser. It makes what
// navigator.credentials returns, as JSON.
package authenticator

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"slices"

	"github.com/go-webauthn/webauthn/protocol/webauthncbor"
)

// Key is an authenticator with one passkey. Changing its fields makes it misbehave.
type Key struct {
	Origin     string // of the page that the browser shows
	Site       string // rpId
	Counter    uint32 // of the last answer; grows with each
	Frozen     bool   // the counter does not grow
	Unverified bool   // the authenticator does not verify its user

	ID     []byte
	signer crypto.Signer
	cose   map[int]any
}

// New returns a key on the curve P-256.
func New(origin, site string) *Key {
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	point, err := signer.PublicKey.Bytes()
	must(err)
	return newKey(origin, site, signer, map[int]any{1: 2, 3: -7, -1: 1, -2: point[1:33], -3: point[33:]})
}

// NewEd25519 returns an Ed25519 key.
func NewEd25519(origin, site string) *Key {
	public, signer, err := ed25519.GenerateKey(rand.Reader)
	must(err)
	return newKey(origin, site, signer, map[int]any{1: 1, 3: -8, -1: 6, -2: []byte(public)})
}

func newKey(origin, site string, signer crypto.Signer, cose map[int]any) *Key {
	k := &Key{Origin: origin, Site: site, ID: make([]byte, 16), signer: signer, cose: cose}
	_, err := rand.Read(k.ID)
	must(err)
	return k
}

// Clone returns a copy that counts on its own.
func (k *Key) Clone() *Key {
	other := *k
	return &other
}

const (
	present  = 1 << 0
	verified = 1 << 2
	attested = 1 << 6
)

// data returns the authenticator's data.
func (k *Key) data(flags byte) []byte {
	site := sha256.Sum256([]byte(k.Site))
	if flags |= present; !k.Unverified {
		flags |= verified
	}
	return binary.BigEndian.AppendUint32(append(site[:], flags), k.Counter)
}

// client returns the browser's data.
func (k *Key) client(kind, challenge string) []byte {
	b, err := json.Marshal(map[string]any{"type": kind, "challenge": challenge, "origin": k.Origin,
		"crossOrigin": false, "other_keys_can_be_added_here": "do not compare clientDataJSON against a template"})
	must(err)
	return b
}

// Create answers navigator.credentials.create for the challenge in base64url.
func (k *Key) Create(challenge string) json.RawMessage {
	cose, err := webauthncbor.Marshal(k.cose)
	must(err)
	aaguid := make([]byte, 16)
	id := binary.BigEndian.AppendUint16(aaguid, uint16(len(k.ID))) //nolint:gosec // 16 bytes
	object, err := webauthncbor.Marshal(map[string]any{"fmt": "none", "attStmt": map[string]any{},
		"authData": slices.Concat(k.data(attested), id, k.ID, cose)})
	must(err)
	return k.answer(map[string]any{"attestationObject": text(object),
		"clientDataJSON": text(k.client("webauthn.create", challenge)), "transports": []string{"internal"}})
}

// Get answers navigator.credentials.get for the challenge in base64url.
func (k *Key) Get(challenge string) json.RawMessage {
	if !k.Frozen {
		k.Counter++
	}
	data, client := k.data(0), k.client("webauthn.get", challenge)
	hash := sha256.Sum256(client)
	signed := slices.Concat(data, hash[:])
	how := crypto.SignerOpts(crypto.Hash(0))
	if _, is := k.signer.(*ecdsa.PrivateKey); is {
		sum := sha256.Sum256(signed)
		signed, how = sum[:], crypto.SHA256
	}
	sig, err := k.signer.Sign(rand.Reader, signed, how)
	must(err)
	return k.answer(map[string]any{"authenticatorData": text(data), "clientDataJSON": text(client),
		"signature": text(sig), "userHandle": text([]byte("handle"))})
}

func (k *Key) answer(response map[string]any) json.RawMessage {
	b, err := json.Marshal(map[string]any{"id": text(k.ID), "rawId": text(k.ID), "type": "public-key",
		"authenticatorAttachment": "platform", "clientExtensionResults": map[string]any{}, "response": response})
	must(err)
	return b
}

func text(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func must(err error) {
	if err != nil {
		panic(err) // the random source does not fail, and the values can be encoded
	}
}
