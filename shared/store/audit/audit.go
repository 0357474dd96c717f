// Package audit records the events of a run's calls as a hash chain: requested, decided, intended, executed. Each entry
// is linked to the previous one with SHA-256. The end of the chain, the [Head], is stored in the run's document and
// moves in the same commit as the run. [Verify] therefore detects and names an entry that was changed, removed, moved,
// inserted or cut off. Anyone who can write both the entries and the head can make up a whole new chain. To detect
// that, the hashes of all entries are in a log outside of the store (package translog).
//
// No entry contains a body, an argument, an address or a token. An input is recorded as its InputHash, which reveals
// nothing without its nonce, and Seal redacts the message.
//
// Events outside of runs, such as linking an account or deleting a conversation, are recorded in the user's own chain
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

	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/strictjson"
	"github.com/countersign-run/countersign/shared/store/document"
	"github.com/countersign-run/countersign/shared/telemetry/obs"
)

// The kinds of entries.
const (
	Requested = "requested"  // a call waits for a decision
	Decided   = "decided"    // the user decided about the call
	Intent    = "intent"     // the call is about to be executed
	Outcome   = "outcome"    // the call was done, failed, or its outcome is unknown
	Denied    = "denied"     // policy or validation refused the call
	Expired   = "expired"    // the call was not decided in time
	Cancelled = "cancelled"  // the run ended before the call
	Reviewed  = "reviewed"   // a person reviewed an unknown outcome
	CleanedUp = "cleaned_up" // what the run's calls created was removed, or removal was given up
	Refused   = "refused"    // a decision was refused: too late, or for a card that was out of date

	// In a user's own chain:

	Linked   = "linked"   // an account was linked; Ref is the link's ID
	Unlinked = "unlinked" // the account is no longer linked
	Withdrew = "withdrew" // the user removed the always-allow entry that ApprovalID added; InputHash is that of its ID

	NoteChanged = "note_changed" // the user edited the note Ref that the assistant keeps about them
	NoteDeleted = "note_deleted" // the user deleted the note

	PreferencesChanged = "preferences_changed" // the user changed their preferences

	TokenMade    = "token_made"    // the user created the token Ref for another program's agent
	TokenRevoked = "token_revoked" // the user revoked the token

	PasskeyAdded   = "passkey_added"   // the user added the passkey Ref
	PasskeyRemoved = "passkey_removed" // the user or an operator removed the passkey

	Disabled = "shut_out" // an operator disabled the user
	Enabled  = "let_in"   // an operator enabled the user again
	Deletion = "deletion" // a deletion has begun: of the conversation Ref, or of all the user's data
	Deleted  = "deleted"  // the deletion is complete
	Exported = "exported" // all the user's data was exported

	HostAdded   = "host_added"   // the user added the host Ref; Decision says what runs there without approval
	HostChanged = "host_changed" // the user changed the host
	HostRemoved = "host_removed" // the user deleted the host, with its secret and its terminals
)

// maxMessage is the maximum length of an entry's message, in bytes.
const maxMessage = 500

// Entry is one entry of a chain (seed 000 §9). Strings may be empty.
type Entry struct {
	Seq      int64     `json:"seq"`   // 1, 2, 3 … within the chain
	RunID    string    `json:"runId"` // the chain: a run's ID, or UserChain(UID)
	UID      string    `json:"uid"`
	At       time.Time `json:"at"`
	Kind     string    `json:"kind"`
	ActionID string    `json:"actionId,omitempty"`
	Tool     string    `json:"tool,omitempty"`
	Model    string    `json:"model,omitempty"`
	// Ref is the ID of the entry's subject, in a user's own chain.
	Ref            string `json:"ref,omitempty"`
	InputHash      string `json:"inputHash,omitempty"` // see InputHash
	PolicyDecision string `json:"policyDecision,omitempty"`
	Decision       string `json:"decision,omitempty"`
	Rule           string `json:"rule,omitempty"` // policy.Decision.Rule
	// Class is the class of the call, if its tool has a policy for single calls (tool.CallPolicy).
	Class string `json:"class,omitempty"`
	// Facts are IDs, kinds and numbers from the tool, if any (tool.Facts).
	Facts           map[string]string `json:"facts,omitempty"`
	ApprovalID      string            `json:"approvalId,omitempty"`
	ExecutionStatus string            `json:"executionStatus,omitempty"`
	ErrorCode       string            `json:"errorCode,omitempty"`
	Message         string            `json:"message,omitempty"`  // for people; no body, no address
	PrevHash        string            `json:"prevHash,omitempty"` // Hash of the previous entry; empty for the first
	Hash            string            `json:"hash,omitempty"`     // of all other fields

	// PrevExpires is when the previous entry may be deleted; zero means never.
	PrevExpires time.Time `json:"prevExpires,omitzero"`

	// KeepDays is the number of days that Seal keeps the entry; 0 stands for the chain's previous setting. Neither
	// KeepDays nor Expires, which Seal sets, is stored in the entry. The next entry, or the head, holds the expiry.
	KeepDays int       `json:"-"`
	Expires  time.Time `json:"-"`
}

// Head is the end of a chain. The zero value is the head of an empty chain.
type Head struct {
	Seq      int64     `json:"seq"`
	Hash     string    `json:"hash"`
	Expires  time.Time `json:"expires,omitzero"`  // when the last entry and all before it may be deleted; zero: never
	KeepDays int       `json:"keepDays,omitzero"` // number of days that its entries are kept
}

// Fields returns the entry's fields for the store's queries.
func (e Entry) Fields() map[string]any {
	return document.AuditFields{UID: e.UID, RunID: e.RunID, Seq: e.Seq, At: e.At, ExpireAt: e.Expires}.Map()
}

// NonceSize is the length of a nonce, in bytes.
const NonceSize = 32

// InputHash returns the recorded form of an input: the HMAC-SHA-256 of its hash with a random nonce. The nonce is
// stored and deleted with the subject of the entry. With a plain hash, anyone who has the audit log could test guesses
// of the input. InputHash returns "" if hash is empty.
//
// Entries of earlier releases contain the hash itself, and InputHash returns the hash itself if there is no nonce. Such
// entries stay, because nothing in a chain may change.
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
// An entry expires no earlier than the one before it. If the one before never expires, the entry never does. Expired
// entries are therefore always the beginning of a chain, and the rest of the chain, or its head, says when they expired
// (see VerifyAt).
func Seal(h Head, e Entry) (Entry, Head) {
	e.Seq = h.Seq + 1
	e.At = e.At.UTC().Truncate(time.Microsecond) // as a store does, so that the entry reads back as the same bytes
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

// sum returns the SHA-256 of the entry's canonical JSON (RFC 8785) without its own hash, in hexadecimal.
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

// Decode decodes a stored entry. It returns a ValidationError for an unknown or a duplicate field, which Entry cannot
// represent.
func Decode(data []byte) (Entry, error) {
	var e Entry
	err := strictjson.Decode(data, &e)
	return e, err
}
