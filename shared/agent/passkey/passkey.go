// Package passkey checks that a person confirmed a decision with a passkey (Web Authentication, level 3). The
// authenticator signs a challenge that follows from the card and the decision, so a signature counts for nothing else.
// A credential counts for a user if the key of the enrolment signed it. Package enrol adds credentials.
//
// This package has no WebAuthn library, because every function that executes calls links it. go-webauthn, with its
// formats of attestation, adds 2.2 MB to a function. Only the function that enrols links it. A test compares the two.
package passkey

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"slices"
	"time"

	"github.com/countersign-run/countersign/shared/agent/decision"
)

// Domains of the signed bytes.
const (
	EnrolmentDomain = "countersign enrolment 1" // by the key of the enrolment
	cardDomain      = "countersign passkey 1"   // by passkeys
)

// Most is the maximum number of a user's passkeys.
const Most = 10

// A Site is the relying party: the console.
type Site struct {
	ID      string // a domain: the origin's host, or a parent domain
	Origin  string // the console's exact origin
	Console string // the console's address, for links
}

// Credential is a passkey of a user, as stored.
type Credential struct {
	ID         string    `json:"id"` // credential ID in base64url
	Name       string    `json:"name"`
	Site       string    `json:"site"`      // ID of the site that it was created for
	PublicKey  []byte    `json:"publicKey"` // DER of SubjectPublicKeyInfo
	Enrolled   uint32    `json:"enrolledCounter,omitempty"`
	Transports []string  `json:"transports,omitempty"`
	Synced     bool      `json:"synced,omitempty"` // it can be copied to other devices
	CreatedAt  time.Time `json:"createdAt"`

	// Proof is the signature of the enrolment. Without it, the credential does not count.
	Proof *decision.Signature `json:"proof,omitempty"`

	// Counter is the counter of the newest decision. It grows with each, or is always 0.
	Counter    uint32    `json:"counter,omitempty"`
	LastUsedAt time.Time `json:"lastUsedAt,omitzero"`
}

// Statement returns what the enrolment signs: whose credential it is, and all that the check of a decision uses.
func (c Credential) Statement(uid string) decision.Statement {
	return decision.Statement{Kind: decision.Passkey, UID: uid, Covers: struct {
		ID, Site  string
		PublicKey []byte
		Enrolled  uint32
	}{c.ID, c.Site, c.PublicKey, c.Enrolled}}
}

// Set is the document of a user's passkeys.
type Set struct {
	Passkeys []Credential `json:"passkeys,omitempty"`
	Pending  *Pending     `json:"pending,omitempty"` // the enrolment in progress
	Code     *Code        `json:"code,omitempty"`
}

// Pending is an enrolment in progress.
type Pending struct {
	Challenge []byte    `json:"challenge"`
	Until     time.Time `json:"until"`
}

// Find returns the passkey with the ID, or nil.
func (s *Set) Find(id string) *Credential {
	i := slices.IndexFunc(s.Passkeys, func(c Credential) bool { return c.ID == id })
	if i < 0 {
		return nil
	}
	return &s.Passkeys[i]
}

// Challenge returns the challenge of a decision that gives these permissions together, and the hashes of the
// statements. ring names the deployment. The times of the statements are not part of the challenge.
func Challenge(ring *decision.Ring, statements ...decision.Statement) (challenge []byte, hashes [][]byte, err error) {
	for _, s := range statements {
		h, err := ring.CardHash(cardDomain, s)
		if err != nil {
			return nil, nil, err
		}
		hashes = append(hashes, h)
	}
	return challengeOf(hashes), hashes, nil
}

// challengeOf returns the challenge for the hashes. They have one length, so no other list has the same challenge.
func challengeOf(hashes [][]byte) []byte {
	h := sha256.New()
	h.Write([]byte(cardDomain + "\n"))
	for _, one := range hashes {
		h.Write(one)
	}
	return h.Sum(nil)
}

// maxBatch is the maximum number of permissions of one decision.
const maxBatch = 1000

// verify reports whether the signature of data is by the key. The kinds of keys are those that an enrolment accepts.
func verify(der, data, sig []byte) bool {
	parsed, err := x509.ParsePKIXPublicKey(der)
	if err != nil {
		return false
	}
	sum := sha256.Sum256(data)
	switch key := parsed.(type) {
	case *ecdsa.PublicKey:
		return key.Curve == elliptic.P256() && ecdsa.VerifyASN1(key, sum[:], sig)
	case ed25519.PublicKey:
		return ed25519.Verify(key, data, sig)
	case *rsa.PublicKey:
		return rsa.VerifyPKCS1v15(key, crypto.SHA256, sum[:], sig) == nil
	}
	return false
}

// Encode returns bytes in base64url, as WebAuthn writes them.
func Encode(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }
