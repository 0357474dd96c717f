// Package decision signs the decisions of people, so that write access to the store is not enough to give a
// permission. A [Statement] describes a decision. A [Signer] signs it where the decision arrives, and a [Ring] of
// public keys checks it where the permission is used. The statement is not stored. The check derives it again from the
// call that is about to run, so a change of any part makes the signature invalid.
package decision

import (
	"crypto/sha256"
	"time"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/strictjson"
)

// Kind is the kind of permission that a statement gives.
type Kind string

// The values of Kind.
const (
	Call  Kind = "call"  // one call, as its card showed it
	Plan  Kind = "plan"  // a plan with its grants
	Own   Kind = "own"   // a call that the person makes
	Entry Kind = "entry" // an entry of the person's always-allow list

	Passkey     Kind = "passkey"      // a passkey of the person, by the key of the enrolment
	PasskeyCode Kind = "passkey code" // an operator's one-time code to add one, by the same key
)

// A Statement is a decision of a person. All fields are part of the signed bytes. An entry of an always-allow list
// applies to all runs, so its statement names no run.
type Statement struct {
	Kind       Kind       `json:"kind"`
	UID        string     `json:"uid"`
	RunID      string     `json:"runId,omitempty"`
	Agent      string     `json:"agent,omitempty"`    // agent of the run
	Terminal   string     `json:"terminal,omitempty"` // terminal of the run
	Origin     string     `json:"origin,omitempty"`   // origin of the page that began the run
	ApprovalID string     `json:"approvalId,omitempty"`
	ActionID   string     `json:"actionId,omitempty"`
	By         string     `json:"by,omitempty"`       // subject of the person's token
	Decision   string     `json:"decision,omitempty"` // run.Decision
	Tool       string     `json:"tool"`
	ArgsHash   string     `json:"argsHash,omitempty"` // run.ArgsHash of the exact call
	Edited     bool       `json:"edited,omitempty"`   // the person edited the arguments
	Place      tool.Place `json:"place,omitzero"`     // account or host
	HeldUntil  time.Time  `json:"heldUntil,omitzero"` // end of the undo window

	Until time.Time `json:"until,omitzero"` // the permission does not count from then on

	// Covers lists the later calls that an entry or a plan permits, as stored.
	Covers any `json:"covers,omitempty"`
	// RestsOn lists the facts that the card showed as what the decision rests on.
	RestsOn []tool.Precondition `json:"restsOn,omitempty"`
}

// Auth says how the person was authenticated, as the issuer's token states it.
type Auth struct {
	Issuer  string    `json:"issuer,omitempty"`
	At      time.Time `json:"authTime,omitzero"` // when the person signed in
	Methods string    `json:"amr,omitempty"`     // RFC 8176, separated by spaces

	Passkey string `json:"passkey,omitempty"`      // ID of the passkey that also signed the decision
	Counter uint32 `json:"passkeyCount,omitempty"` // of that passkey before the decision
}

// A Signature is the stored proof of a statement, with the signed facts that no other document has.
type Signature struct {
	Key   string    `json:"key"`            // ID of the key that signed
	At    time.Time `json:"at"`             // when the person decided
	Until time.Time `json:"until,omitzero"` // Statement.Until
	Auth  Auth      `json:"auth,omitzero"`
	// Batch has the hashes of all statements that Sig covers, if it covers several. One decision can give several
	// permissions and is signed once.
	Batch [][]byte `json:"batch,omitempty"`
	Sig   []byte   `json:"sig"`
}

// domain is the first part of the signed bytes of decisions. Its number changes with the form of a statement.
const domain = "countersign decision 1"

// signed is a statement with the facts of its signature.
type signed struct {
	Domain     string    `json:"domain"`
	Deployment string    `json:"deployment,omitempty"`
	Key        string    `json:"key"`
	At         time.Time `json:"at"`
	Auth       Auth      `json:"auth,omitzero"`
	Statement
}

// hash returns the SHA-256 of the canonical JSON of the statement with the facts of its signature.
func (r *Ring) hash(s Statement, sig *Signature) ([]byte, error) {
	s.HeldUntil, s.Until = utc(s.HeldUntil), utc(sig.Until)
	return hashOf(signed{Domain: r.domain, Deployment: r.deployment, Key: sig.Key, At: utc(sig.At), Auth: sig.Auth,
		Statement: s})
}

// CardHash returns the SHA-256 of the canonical JSON of the statement without its times, which are not known before
// the decision. domain and the deployment's name are its first parts.
func (r *Ring) CardHash(domain string, s Statement) ([]byte, error) {
	s.HeldUntil, s.Until = time.Time{}, time.Time{}
	return hashOf(struct {
		Domain     string `json:"domain"`
		Deployment string `json:"deployment,omitempty"`
		Statement
	}{domain, r.deployment, s})
}

// hashOf returns the SHA-256 of the canonical JSON of v.
func hashOf(v any) ([]byte, error) {
	b, err := strictjson.Marshal(v)
	if err != nil {
		return nil, err
	}
	if b, err = strictjson.Canonical(b); err != nil {
		return nil, err
	}
	sum := sha256.Sum256(b)
	return sum[:], nil
}

// utc returns t in UTC without a monotonic clock, so that it is spelled as it would be after it was stored.
func utc(t time.Time) time.Time { return t.UTC().Round(0) }

// message returns the bytes that are signed for the hashes.
func message(domain string, hashes [][]byte) []byte {
	m := []byte(domain + "\n")
	for _, h := range hashes {
		m = append(m, h...)
	}
	return m
}
