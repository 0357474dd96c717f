package decision

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"slices"
	"time"
)

// The errors of [Ring.Verify]. After any of them, the caller must not use the permission.
var (
	ErrUnsigned = errors.New("decision: no signature")
	ErrOver     = errors.New("decision: expired")
	ErrForged   = errors.New("decision: the signature does not match")
)

// A Signer signs with one key.
type Signer interface {
	// ID returns the ID of the key.
	ID(ctx context.Context) (string, error)
	// Sign returns the Ed25519 signature of data.
	Sign(ctx context.Context, data []byte) ([]byte, error)
}

// A Ring has the public keys whose signatures count in one deployment. A nil Ring checks nothing and signs nothing.
type Ring struct {
	domain     string
	deployment string
	keys       map[string]ed25519.PublicKey
	signer     Signer // nil: this process only checks
	lenient    bool   // a permission without a signature counts
}

// NewRing returns a ring with the keys by their IDs. deployment names the store that the decisions are for, so that a
// signature of another deployment with the same key does not count. signer may be nil.
func NewRing(deployment string, keys map[string]ed25519.PublicKey, signer Signer) *Ring {
	return &Ring{domain: domain, deployment: deployment, keys: keys, signer: signer}
}

// maxBatch is the maximum number of statements that one signature covers: a decision, and an entry for each of its
// recipients.
const maxBatch = 1000

// With returns the ring of a process that signs with signer. A nil ring stays nil.
func (r *Ring) With(signer Signer) *Ring {
	if r == nil {
		return nil
	}
	signs := *r
	signs.signer = signer
	return &signs
}

// For returns a ring for signatures of another domain. A signature of one domain does not count in another.
func (r *Ring) For(domain string) *Ring {
	other := *r
	other.domain = domain
	return &other
}

// Lenient returns a ring that also accepts permissions without a signature. It is for the time in which not all
// processes of a deployment sign yet.
func (r *Ring) Lenient() *Ring {
	lenient := *r
	lenient.lenient = true
	return &lenient
}

// Signs reports whether this process can sign.
func (r *Ring) Signs() bool { return r != nil && r.signer != nil }

// Requires reports whether a permission counts only with a signature.
func (r *Ring) Requires() bool { return r != nil && !r.lenient }

// Sign signs the statements together, and returns the signature of each. Without a signer it returns no signatures:
// each is nil. facts has the time of the decision and how the person was authenticated.
func (r *Ring) Sign(ctx context.Context, facts Signature, statements ...Statement) ([]*Signature, error) {
	all := make([]*Signature, len(statements))
	if !r.Signs() {
		return all, nil
	}
	id, err := r.signer.ID(ctx)
	if err != nil {
		return nil, err
	}
	if _, known := r.keys[id]; !known { // each permission would count as forged
		return nil, fmt.Errorf("decision: the public keys lack the key that signs, %s", id)
	}
	if len(statements) == 0 || len(statements) > maxBatch {
		return nil, fmt.Errorf("decision: %d statements; the limit is 1 to %d", len(statements), maxBatch)
	}
	hashes := make([][]byte, len(statements))
	for i, s := range statements {
		all[i] = &Signature{Key: id, At: facts.At, Until: s.Until, Auth: facts.Auth}
		if hashes[i], err = r.hash(s, all[i]); err != nil {
			return nil, err
		}
	}
	sig, err := r.signer.Sign(ctx, message(r.domain, hashes))
	if err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Sig = sig; len(hashes) > 1 {
			all[i].Batch = hashes
		}
	}
	return all, nil
}

// Verify returns nil if a key of the ring signed the statement and the statement has not expired. A nil ring accepts
// everything, and a lenient ring accepts permissions without a signature.
func (r *Ring) Verify(s Statement, sig *Signature, now time.Time) error {
	switch {
	case r == nil || sig == nil && r.lenient:
		return nil
	case sig == nil:
		return ErrUnsigned
	}
	key, known := r.keys[sig.Key]
	if !known || len(sig.Batch) > maxBatch {
		return ErrForged
	}
	h, err := r.hash(s, sig)
	if err != nil {
		return ErrForged
	}
	hashes := sig.Batch
	if len(hashes) == 0 {
		hashes = [][]byte{h}
	}
	// all hashes have one length, so no other list of hashes has the same message
	whole := !slices.ContainsFunc(hashes, func(other []byte) bool { return len(other) != len(h) })
	listed := slices.ContainsFunc(hashes, func(other []byte) bool { return bytes.Equal(other, h) })
	switch {
	case !whole || !listed || !ed25519.Verify(key, message(r.domain, hashes), sig.Sig):
		return ErrForged
	case !sig.Until.IsZero() && !now.Before(sig.Until):
		return ErrOver
	}
	return nil
}
