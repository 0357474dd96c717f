// Package audit is the chain of what a run did: requested, decided, intended, carried out. Entries are sealed one behind
// the other with SHA-256, and the end of the chain, the Head, stands in the run's document and moves in the same commit
// as the run. So an entry that was changed, removed, moved, inserted or cut off shows, and Verify names it. Who can write
// both the entries and the head can make up a whole new chain: against that, copies of heads are kept elsewhere
// (reliability §3).
//
// No body, argument, address or token is in an entry: an input is there as InputHash, which says nothing to who lacks its
// nonce, and Seal redacts the message.
//
// What happens outside of runs (an account is linked, a conversation is deleted) is in the user's own chain (own.go).
package audit

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/gowebpki/jcs"

	"github.com/countersign-run/countersign/shared/obs"
	"github.com/countersign-run/countersign/shared/strictjson"
)

// What an entry records.
const (
	Requested = "requested" // a call waits for somebody
	Decided   = "decided"   // somebody decided
	Intent    = "intent"    // it is about to be carried out
	Outcome   = "outcome"   // it was, or failed, or nobody knows
	Denied    = "denied"    // policy or validation refused it
	Expired   = "expired"   // nobody decided in time
	Cancelled = "cancelled" // its run ended before it
	Reviewed  = "reviewed"  // somebody settled an outcome that was not known
	Refused   = "refused"   // somebody's decision was not taken: too late, or about what had changed

	// In a user's own chain:

	Linked   = "linked"   // an account was linked; Ref is the link's id
	Unlinked = "unlinked" // it is linked no more
	Withdrew = "withdrew" // the user took an always-allow back; InputHash is of its id
	ShutOut  = "shut_out" // the user was shut out
	LetIn    = "let_in"   // the user was let in again
	Deletion = "deletion" // a deletion was begun: of the conversation Ref, or of all that is kept of the user
	Deleted  = "deleted"  // it is complete
	Exported = "exported" // all that is kept of the user was handed out
)

// maxMessage bounds an entry's message, in bytes.
const maxMessage = 500

// Entry is one link of a chain (seed 000 §9). Texts may be empty.
type Entry struct {
	Seq             int64     `json:"seq"`   // 1, 2, 3 … within the chain
	RunID           string    `json:"runId"` // the chain: a run, or Own(UID)
	UID             string    `json:"uid"`
	At              time.Time `json:"at"`
	Kind            string    `json:"kind"`
	ActionID        string    `json:"actionId,omitempty"`
	Tool            string    `json:"tool,omitempty"`
	Model           string    `json:"model,omitempty"`
	Ref             string    `json:"ref,omitempty"`       // in a user's own chain: the id of what it is about
	InputHash       string    `json:"inputHash,omitempty"` // see InputHash
	PolicyDecision  string    `json:"policyDecision,omitempty"`
	Decision        string    `json:"decision,omitempty"`
	Rule            string    `json:"rule,omitempty"` // policy.Decision.Rule
	ApprovalID      string    `json:"approvalId,omitempty"`
	ExecutionStatus string    `json:"executionStatus,omitempty"`
	ErrorCode       string    `json:"errorCode,omitempty"`
	Message         string    `json:"message,omitempty"`  // for people; no body, no address
	PrevHash        string    `json:"prevHash,omitempty"` // Hash of the entry before; empty for the first
	Hash            string    `json:"hash,omitempty"`     // of all the rest
}

// Head is the end of a chain. The zero value is that of an empty one.
type Head struct {
	Seq  int64  `json:"seq"`
	Hash string `json:"hash"`
}

// Path is where an entry is stored: "audit/<run>_<seq>", the number with six digits or more.
func Path(runID string, seq int64) string { return fmt.Sprintf("audit/%s_%06d", runID, seq) }

// Fields are what the store's queries look at.
func (e Entry) Fields() map[string]any {
	return map[string]any{"uid": e.UID, "runId": e.RunID, "seq": e.Seq, "at": e.At}
}

// NonceSize is the length of a nonce, in bytes.
const NonceSize = 32

// InputHash is what an entry says of an input: HMAC-SHA-256 of its hash, under a random nonce that is kept with what the
// entry is about, and deleted with it. A hash alone would let anybody who has the audit try out what the input may have
// been. Without an input it is empty.
//
// Entries of earlier releases hold the hash itself, and so does this give it where no nonce was made yet. They stay,
// because nothing in a chain may change.
func InputHash(nonce []byte, hash string) string {
	if hash == "" || len(nonce) == 0 {
		return hash
	}
	mac := hmac.New(sha256.New, nonce)
	mac.Write([]byte(hash))
	return hex.EncodeToString(mac.Sum(nil))
}

// Seal makes e the next entry behind the head, and gives the new head. Both are to be stored in one commit.
func Seal(h Head, e Entry) (Entry, Head) {
	e.Seq = h.Seq + 1
	e.At = e.At.UTC().Truncate(time.Microsecond) // what a store keeps of a time, so that it reads back to the same bytes
	e.Message = obs.Shorten(obs.Redact(e.Message), maxMessage)
	e.PrevHash = h.Hash
	e.Hash = e.sum()
	return e, Head{e.Seq, e.Hash}
}

// sum is the SHA-256 of the entry's canonical JSON (RFC 8785) without its own hash, in hexadecimal digits.
func (e Entry) sum() string {
	e.Hash = ""
	text, err := json.Marshal(e)
	if err == nil {
		text, err = jcs.Transform(text)
	}
	if err != nil {
		return "" // a year beyond 9999, which no entry of ours has: it matches no hash
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// Decode reads a stored entry. It refuses what Entry would not show: a field of another name, or one that stands twice.
func Decode(data []byte) (Entry, error) {
	var e Entry
	err := strictjson.Decode(data, &e)
	return e, err
}
