package run

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"io"
	"strconv"
	"strings"

	"github.com/countersign-run/countersign/shared/agent/tool"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/store/audit"
)

// validID matches every ID that this package makes. Requests with other IDs are refused.
var validID = lazyregexp.New(`^[A-Za-z0-9_-]{16,64}$`)

// ValidID reports whether s has the form of the ID of a run, thread, action or approval.
func ValidID(s string) bool { return validID.MatchString(s) }

var lower32 = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// NewID returns a random ID of 128 bits: 26 letters and digits. It panics if random fails.
func NewID(random io.Reader) string {
	var b [16]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		panic("run.NewID: no randomness: " + err.Error()) // no ID and no hash is safe without randomness
	}
	return lower32.EncodeToString(b[:])
}

// NewNonce returns a random nonce for the audit hashes of one run or one user (audit.InputHash). It panics if random
// fails.
func NewNonce(random io.Reader) []byte {
	b := make([]byte, audit.NonceSize)
	if _, err := io.ReadFull(random, b); err != nil {
		panic("run.NewNonce: no randomness: " + err.Error()) // no ID and no hash is safe without randomness
	}
	return b
}

// digest returns a short name for the parts: 128 bits of SHA-256 over their lengths and bytes.
func digest(parts ...string) string {
	sum := hashOf(parts...)
	return lower32.EncodeToString(sum[:16])
}

// hashOf returns a hash of texts. The hash also covers their lengths, so it depends on the boundaries between the
// texts.
func hashOf(parts ...string) [sha256.Size]byte {
	var b []byte
	for _, p := range parts {
		b = append(append(strconv.AppendInt(b, int64(len(p)), 10), ':'), p...)
	}
	return sha256.Sum256(b)
}

// KeyedRunID returns the run ID for a user's Idempotency-Key. The same key always gives the same ID, so the store
// refuses to create the run twice.
func KeyedRunID(uid, key string) string { return digest("run", uid, key) }

// NewThreadID returns the ID of the thread that a run starts. It is derived from the run's ID, so a repeated request
// creates only one thread.
func NewThreadID(runID string) string { return digest("thread", runID) }

// ClientID returns the internal ID of an OAuth client.
func ClientID(client string) string { return digest("client", client) }

// KeyedThreadID returns the ID of the thread for a user's key.
func KeyedThreadID(uid, key string) string { return digest("keyed thread", uid, key) }

// ActionID returns the ID of a call. turn and index are its position in the run. again is the number of new starts
// after an unknown outcome, from 0.
func ActionID(runID string, turn, index, again int) string {
	return digest("action", runID, strconv.Itoa(turn), strconv.Itoa(index), strconv.Itoa(again))
}

// ApprovalID returns the ID of the run's n-th approval. It contains the run's ID, which is secret, so the run and the
// approval can be read in one round trip.
func ApprovalID(runID string, n int) string { return runID + "-" + strconv.Itoa(n) }

// RunOfApproval returns the ID of the run that the approval belongs to. ok is false if approvalID does not have the
// form of an approval's ID.
func RunOfApproval(approvalID string) (runID string, ok bool) {
	runID, n, ok := strings.Cut(approvalID, "-")
	if _, err := strconv.Atoi(n); err != nil {
		return "", false
	}
	return runID, ok && ValidID(runID)
}

// ArgsHash returns the hash that an approval is bound to. It covers the user, the tool with its schema version, the
// canonical arguments, and the account or host that the call acts on, if any.
func ArgsHash(uid string, spec tool.Spec, in tool.Place, args json.RawMessage) string {
	return ArgsHashOf(uid, spec.Name, spec.Version(), in, args)
}

// ArgsHashOf is [ArgsHash] with a version of the tool, which may be an earlier one.
func ArgsHashOf(uid, name, version string, in tool.Place, args json.RawMessage) string {
	parts := []string{uid, name, version, string(args)}
	if in != (tool.Place{}) {
		parts = append(parts, in.Label, in.Name, in.ID)
	}
	sum := hashOf(parts...)
	return hex.EncodeToString(sum[:])
}
