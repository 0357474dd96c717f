package run

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/countersign-run/countersign/shared/audit"
	"github.com/countersign-run/countersign/shared/lazyregexp"
	"github.com/countersign-run/countersign/shared/tool"
)

// validID matches every id made here, and is all that is accepted as an id in a request.
var validID = lazyregexp.New(`^[A-Za-z0-9_-]{16,64}$`)

// ValidID reports whether s can be the id of a run, thread, action or approval.
func ValidID(s string) bool { return validID.MatchString(s) }

var lower32 = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// NewID returns a random id of 128 bits: 26 letters and digits.
func NewID(random io.Reader) string {
	var b [16]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		panic("run.NewID: no randomness: " + err.Error()) // without randomness no id and no hash is safe
	}
	return lower32.EncodeToString(b[:])
}

// NewNonce returns a random nonce for the audit's hashes of one run, or of one user (audit.InputHash).
func NewNonce(random io.Reader) []byte {
	b := make([]byte, audit.NonceSize)
	if _, err := io.ReadFull(random, b); err != nil {
		panic("run.NewNonce: no randomness: " + err.Error()) // without randomness no id and no hash is safe
	}
	return b
}

// digest returns a short name for the parts: 128 bits of SHA-256 over their lengths and bytes.
func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return lower32.EncodeToString(h.Sum(nil)[:16])
}

// KeyedRunID returns the run id for a user's Idempotency-Key. The same key names the same run, so the store itself
// refuses to create it twice.
func KeyedRunID(uid, key string) string { return digest("run", uid, key) }

// NewThreadID returns the id of the thread that a run begins. It is derived from the run's id, so that a repeated start
// makes one thread.
func NewThreadID(runID string) string { return digest("thread", runID) }

// ClientID returns the id by which a client of OAuth is known here.
func ClientID(client string) string { return digest("client", client) }

// KeyedThreadID returns the id of the thread for a user's key.
func KeyedThreadID(uid, key string) string { return digest("keyed thread", uid, key) }

// ActionID returns the id of the call at index of the run's turn; again counts the fresh starts after an unknown
// outcome (0 at first).
func ActionID(runID string, turn, index, again int) string {
	return digest("action", runID, strconv.Itoa(turn), strconv.Itoa(index), strconv.Itoa(again))
}

// ApprovalID returns the id of the run's n-th approval. The run's id is its secret part, and lets both be read in one
// round trip.
func ApprovalID(runID string, n int) string { return runID + "-" + strconv.Itoa(n) }

// RunOfApproval returns the id of the run that the approval belongs to.
func RunOfApproval(approvalID string) (runID string, ok bool) {
	runID, n, ok := strings.Cut(approvalID, "-")
	if _, err := strconv.Atoi(n); err != nil {
		return "", false
	}
	return runID, ok && ValidID(runID)
}

// ArgsHash returns the hash that an approval is bound to. It covers the user, the tool with its schema, the canonical
// arguments, and the place that the call acts on, if any.
func ArgsHash(uid string, spec tool.Spec, in tool.Place, args json.RawMessage) string {
	parts := []string{uid, spec.Name, spec.Version(), string(args)}
	if in != (tool.Place{}) {
		parts = append(parts, in.Label, in.Name, in.ID)
	}
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))
}
