// Package translog keeps the hashes of all audit entries in an append-only Merkle log. Someone who can write the store
// can write a new chain of entries, but not a new log: the log has a key and a place of its own, and a later checkpoint
// must contain everything that an earlier one has.
//
// The log has the layout of C2SP's tlog-tiles (https://c2sp.org/tlog-tiles), so tools that read such logs read this
// one. The [Publisher] appends new entries, and [Read] checks a whole log.
package translog

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// A Leaf has an audit entry's hash, and the time at which the entry may be deleted. It says nothing about the entry,
// because the hash covers the random ID of the run.
type Leaf struct {
	Hash    [sha256.Size]byte
	Expires time.Time // in seconds; zero means never
}

// leafSize is the length of an encoded leaf: the hash, and 8 bytes for the Unix time of its expiry, or 0.
const leafSize = sha256.Size + 8

// leafOf returns the leaf of an entry with this hash in hexadecimal, which expires at the time. It returns false if the
// hash is invalid.
func leafOf(hash string, expires time.Time) (l Leaf, ok bool) {
	h, err := hex.DecodeString(hash)
	if err != nil || len(h) != len(l.Hash) {
		return l, false
	}
	l.Hash = [sha256.Size]byte(h)
	if !expires.IsZero() {
		l.Expires = time.Unix(expires.Unix(), 0).UTC()
	}
	return l, true
}

// encode returns the bytes of the leaf in the log.
func (l Leaf) encode() []byte {
	var at uint64
	if !l.Expires.IsZero() {
		at = uint64(l.Expires.Unix())
	}
	return binary.BigEndian.AppendUint64(l.Hash[:len(l.Hash):len(l.Hash)], at)
}

func decodeLeaf(b []byte) (l Leaf, err error) {
	if len(b) != leafSize {
		return l, fmt.Errorf("translog: a leaf of %d bytes; expected %d", len(b), leafSize)
	}
	l.Hash = [sha256.Size]byte(b)
	if at := int64(binary.BigEndian.Uint64(b[sha256.Size:])); at != 0 {
		l.Expires = time.Unix(at, 0).UTC()
	}
	return l, nil
}

// A Checkpoint is a state of the log (https://c2sp.org/tlog-checkpoint).
type Checkpoint struct {
	Origin string // the log's name
	tlog.Tree
}

// text returns the signed text of the checkpoint.
func (c Checkpoint) text() string { return fmt.Sprintf("%s\n%d\n%s\n", c.Origin, c.N, c.Hash) }

// MaxCheckpoint is the maximum size of a checkpoint with its signatures, in bytes.
const MaxCheckpoint = 64 << 10

var errCheckpoint = errors.New("translog: not a checkpoint that a key of the log has signed")

// ParseCheckpoint returns the checkpoint in a note if one of the keys has signed it. The key's name must be the origin.
func ParseCheckpoint(text []byte, keys note.Verifiers) (c Checkpoint, err error) {
	if len(text) > MaxCheckpoint {
		return c, errCheckpoint
	}
	n, err := note.Open(text, keys)
	if err != nil {
		return c, errCheckpoint
	}
	lines := strings.SplitN(n.Text, "\n", 4)
	if len(lines) != 4 || lines[0] != n.Sigs[0].Name {
		return c, errCheckpoint
	}
	size, err := strconv.ParseInt(lines[1], 10, 64)
	root, bad := base64.StdEncoding.Strict().DecodeString(lines[2])
	if err != nil || bad != nil || size < 0 || strconv.FormatInt(size, 10) != lines[1] || len(root) != tlog.HashSize {
		return c, errCheckpoint
	}
	return Checkpoint{lines[0], tlog.Tree{N: size, Hash: tlog.Hash(root)}}, nil
}

// A PublicKey is the public half of an Ed25519 key.
type PublicKey interface {
	Public(ctx context.Context) (ed25519.PublicKey, error)
}

// A Signer signs checkpoints with an Ed25519 key.
type Signer interface {
	PublicKey
	Sign(ctx context.Context, data []byte) ([]byte, error)
}

// BucketOrigin returns the name of the log in a bucket of Cloud Storage.
func BucketOrigin(bucket string) string { return "storage.googleapis.com/" + bucket }

// VerifierKey returns the text that identifies the key of the log with this origin (C2SP signed-note).
func VerifierKey(ctx context.Context, origin string, s PublicKey) (string, error) {
	public, err := s.Public(ctx)
	if err != nil {
		return "", err
	}
	return note.NewEd25519VerifierKey(origin, public)
}

// maxKeys is the maximum number of keys of a log.
const maxKeys = 50

var errKeys = fmt.Errorf("translog: expected 1 to %d verifier keys such as NAME+HASH+KEY, with commas between them",
	maxKeys)

// ParseKeys parses verifier keys with commas between them. A key can be listed twice.
func ParseKeys(text string) (note.Verifiers, error) {
	var all []note.Verifier
	seen := map[string]bool{}
	for one := range strings.SplitSeq(text, ",") {
		if one = strings.TrimSpace(one); seen[one] {
			continue
		}
		v, err := note.NewVerifier(one)
		if err != nil || len(all) == maxKeys {
			return nil, errKeys
		}
		seen[one], all = true, append(all, v)
	}
	return note.VerifierList(all...), nil
}

// signing is a Signer for one note.
type signing struct {
	note.Verifier

	ctx context.Context
	by  Signer
}

func (s signing) Sign(text []byte) ([]byte, error) { return s.by.Sign(s.ctx, text) }

// sign returns the signed note of the checkpoint.
func sign(ctx context.Context, c Checkpoint, by Signer) ([]byte, error) {
	key, err := VerifierKey(ctx, c.Origin, by)
	if err != nil {
		return nil, err
	}
	v, err := note.NewVerifier(key)
	if err != nil {
		return nil, fmt.Errorf("translog: the log's name %q: %w", c.Origin, err)
	}
	return note.Sign(&note.Note{Text: c.text()}, signing{v, ctx, by})
}
