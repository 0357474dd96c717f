// Package audit records what a run did as a hash chain: requested, decided, intended, carried out. Each entry is linked
// to the previous one with SHA-256, and the end of the chain, the [Head], is stored in the run's document and moves in
// the same commit as the run. [Verify] therefore detects and names an entry that was changed, removed, moved, inserted
// or cut off. Anyone who can write both the entries and the head can make up a whole new chain; against that, copies of
// heads are kept elsewhere (reliability §3).
//
// No entry contains a body, an argument, an address or a token: an input is recorded as its InputHash, which reveals
// nothing without its nonce, and Seal redacts the message.
//
// What happens outside of runs (an account is linked, a conversation is deleted) is recorded in the user's own chain
// (own.go).
package audit

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/countersign-run/countersign/shared/clip"
	"github.com/countersign-run/countersign/shared/document"
	"github.com/countersign-run/countersign/shared/obs"
	"github.com/countersign-run/countersign/shared/strictjson"
)

// The kinds of entries.
const (
	Requested = "requested"  // a call waits for a decision
	Decided   = "decided"    // its user decided about it
	Intent    = "intent"     // the call is about to be carried out
	Outcome   = "outcome"    // it was carried out, failed, or its outcome is unknown
	Denied    = "denied"     // policy or validation refused it
	Expired   = "expired"    // it was not decided in time
	Cancelled = "cancelled"  // its run ended before it
	Reviewed  = "reviewed"   // a person settled an unknown outcome
	CleanedUp = "cleaned_up" // what the run's calls had left was removed, or that was given up
	Refused   = "refused"    // a decision was not accepted: too late, or about what had changed

	// In a user's own chain:

	Linked   = "linked"   // an account was linked; Ref is the link's id
	Unlinked = "unlinked" // it is no longer linked
	Withdrew = "withdrew" // the user withdrew an always-allow; InputHash is that of its id

	TokenMade    = "token_made"    // the user gave another program's agent the token Ref
	TokenRevoked = "token_revoked" // the user took it back

	Disabled = "shut_out" // an operator disabled the user
	Enabled  = "let_in"   // an operator enabled the user again
	Deletion = "deletion" // a deletion has begun: of the conversation Ref, or of everything stored for the user
	Deleted  = "deleted"  // it is complete
	Exported = "exported" // everything stored for the user was exported

	HostAdded   = "host_added"   // the user added the host Ref; Decision says what runs there unasked
	HostChanged = "host_changed" // the user changed it
	HostRemoved = "host_removed" // the user deleted it, with its secret and its terminals
)

// maxMessage limits an entry's message, in bytes.
const maxMessage = 500

// Entry is one entry of a chain (seed 000 §9). Strings may be empty.
type Entry struct {
	Seq      int64     `json:"seq"`   // 1, 2, 3 … within the chain
	RunID    string    `json:"runId"` // the chain: a run, or Own(UID)
	UID      string    `json:"uid"`
	At       time.Time `json:"at"`
	Kind     string    `json:"kind"`
	ActionID string    `json:"actionId,omitempty"`
	Tool     string    `json:"tool,omitempty"`
	Model    string    `json:"model,omitempty"`
	// in a user's own chain: the id of the entry's subject
	Ref            string `json:"ref,omitempty"`
	InputHash      string `json:"inputHash,omitempty"` // see InputHash
	PolicyDecision string `json:"policyDecision,omitempty"`
	Decision       string `json:"decision,omitempty"`
	Rule           string `json:"rule,omitempty"` // policy.Decision.Rule
	// of the call, where its tool tells of each (tool.Ruling)
	Class string `json:"class,omitempty"`
	// ids, kinds and numbers, where its tool has any (tool.Facts)
	Facts           map[string]string `json:"facts,omitempty"`
	ApprovalID      string            `json:"approvalId,omitempty"`
	ExecutionStatus string            `json:"executionStatus,omitempty"`
	ErrorCode       string            `json:"errorCode,omitempty"`
	Message         string            `json:"message,omitempty"`  // for people; no body, no address
	PrevHash        string            `json:"prevHash,omitempty"` // Hash of the previous entry; empty for the first
	Hash            string            `json:"hash,omitempty"`     // of all other fields

	// PrevExpires is when the previous entry may be deleted; zero: never.
	PrevExpires time.Time `json:"prevExpires,omitzero"`

	// KeepDays is for how many days Seal lets the entry be kept; 0: as long as the chain's entries before. It is not
	// stored, and neither is Expires, which Seal sets: the next entry, or the head, is what vouches for it.
	KeepDays int       `json:"-"`
	Expires  time.Time `json:"-"`
}

// Head is the end of a chain. The zero value is the head of an empty chain.
type Head struct {
	Seq      int64     `json:"seq"`
	Hash     string    `json:"hash"`
	Expires  time.Time `json:"expires,omitzero"`  // when the last entry may be deleted, with all before it; zero: never
	KeepDays int       `json:"keepDays,omitzero"` // for how long its entries are kept
}

// Fields returns the fields for the store's queries.
func (e Entry) Fields() map[string]any {
	return document.AuditFields{UID: e.UID, RunID: e.RunID, Seq: e.Seq, At: e.At, ExpireAt: e.Expires}.Map()
}

// NonceSize is the length of a nonce, in bytes.
const NonceSize = 32

// InputHash returns what an entry records of an input: the HMAC-SHA-256 of its hash, with a random nonce that is stored
// and deleted with the subject of the entry. With a plain hash, anyone who has the audit could test guesses of the
// input. If there is no input, it is empty.
//
// Entries of earlier releases contain the hash itself, and InputHash returns the hash itself if there is no nonce. They
// stay, because nothing in a chain may change.
func InputHash(nonce []byte, hash string) string {
	if hash == "" || len(nonce) == 0 {
		return hash
	}
	mac := hmac.New(sha256.New, nonce)
	mac.Write([]byte(hash))
	return hex.EncodeToString(mac.Sum(nil))
}

// Seal makes e the next entry after the head, and returns it with the new head. Both must be stored in one commit.
//
// An entry expires no earlier than the one before it, and never where that never does. So what expired is the beginning
// of a chain, and whatever is left of the chain, or its head, says when that was (see VerifyAt).
func Seal(h Head, e Entry) (Entry, Head) {
	e.Seq = h.Seq + 1
	e.At = e.At.UTC().Truncate(time.Microsecond) // truncated as a store does, so that it reads back as the same bytes
	e.Message = clip.Text(obs.Redact(e.Message), maxMessage)
	e.PrevHash, e.PrevExpires = h.Hash, h.Expires
	e.KeepDays = cmp.Or(e.KeepDays, h.KeepDays)
	e.Expires = time.Time{}
	if e.KeepDays > 0 && (h.Seq == 0 || !h.Expires.IsZero()) {
		e.Expires = e.At.AddDate(0, 0, e.KeepDays)
		if h.Expires.After(e.Expires) {
			e.Expires = h.Expires
		}
	}
	e.Hash = e.sum()
	return e, Head{e.Seq, e.Hash, e.Expires, e.KeepDays}
}

// sum returns the SHA-256 of the entry's canonical JSON (RFC 8785) without its own hash, in hexadecimal digits.
func (e Entry) sum() string {
	e.Hash = ""
	text, err := json.Marshal(e)
	if err == nil {
		err = (*jsontext.Value)(&text).Canonicalize()
	}
	if err != nil {
		return "" // a year beyond 9999, which no genuine entry has: "" matches no hash
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Decode decodes a stored entry. It refuses what Entry cannot represent: an unknown or a duplicate field.
func Decode(data []byte) (Entry, error) {
	var e Entry
	err := strictjson.Decode(data, &e)
	return e, err
}
