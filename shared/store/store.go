// Package store is the port to the document store. It has reads by path, the few queries listed in [Indexes], Commit,
// which applies several writes atomically, and Watch, which returns a document's changes. The port is exactly as strict
// as Firestore, so that a second backend (shared/store/embedded, one SQLite file) cannot accept input that the first
// (shared/store/firestore) would refuse. Package storetest runs the same tests against both.
//
// A document has a path ("runs/abc", "runs/abc/events/000001"), a few typed Fields, which are the only values that a
// query can use, and Data: JSON, stored byte for byte. There are no interactive transactions. A transition reads,
// decides, and commits with the versions that it read. After a conflict, it reads and decides again.
//
// Besides the port and its backends, this group contains the packages that define stored data: document (paths, fields,
// queries), output (the output of calls), attachment (the files of prompts) and audit (the hash chain of a run's
// events). Uploaded files, which are too large for documents, have a port of their own: package blob.
package store

import (
	"context"
	"errors"
	"iter"
	"time"
)

// Limits that all backends enforce before anything is sent (reliability §0.5). Firestore's Go client retries a commit
// that is too large until its deadline, so such a commit must never leave the process.
const (
	MaxDoc    = 900 << 10 // bytes of one document: path, fields and data
	MaxCommit = 3 << 20   // bytes of all writes of one commit
	MaxWrites = 500       // writes in one commit
	MaxReads  = 500       // paths in one Get
	MaxLimit  = 1000      // documents of one Query
)

// The errors of a store. If a retry may help after any other error of a backend, that error is wrapped in
// ErrUnavailable.
var (
	// ErrConflict means that a precondition failed: read again and decide again.
	ErrConflict = errors.New("store: the document has changed since it was read")
	// ErrTooLarge means that MaxDoc, MaxCommit, MaxWrites or MaxReads is exceeded.
	ErrTooLarge = errors.New("store: the document or commit is too large")
	// ErrBadPath means that a path does not name a document; see ValidPath.
	ErrBadPath = errors.New("store: not a document path")
	// ErrInvalid means that a write or a query is a mistake of the program; see CheckCommit and CheckQuery.
	ErrInvalid = errors.New("store: invalid write or query")
	// ErrUnavailable means that the backend is down, overloaded or out of time. A commit may or may not have been
	// applied.
	ErrUnavailable = errors.New("store: the backend is temporarily unavailable")
)

// Doc is one document.
type Doc struct {
	Path string
	// Fields are the values that queries use: string (up to 1500 bytes), int64, bool or time.Time (truncated to
	// microseconds, UTC).
	Fields map[string]any
	// Data is JSON in UTF-8, stored byte for byte.
	Data []byte
	// Version is the time of the last write by the store's clock. It grows with each write, and is zero if the document
	// does not exist.
	Version time.Time
	// ReadTime is the time of the read by the store's clock. It is also set if the document does not exist. It is never
	// before an earlier Version.
	ReadTime time.Time
}

// Exists reports whether the document existed when it was read.
func (d Doc) Exists() bool { return !d.Version.IsZero() }

// Op is the operation of a Write.
type Op int

// The operations of a Write.
const (
	OpCreate Op = iota + 1 // the document must not exist
	OpUpdate               // the document must still have Doc.Version
	OpDelete               // the document must still have Doc.Version; with a zero Version, any version is deleted
	OpCheck                // the document must still have Doc.Version, and does not change
)

// Write is one part of a commit.
type Write struct {
	Op  Op
	Doc Doc
}

// Create returns a Write that creates a document. The document must not exist.
func Create(path string, fields map[string]any, data []byte) Write {
	return Write{OpCreate, Doc{Path: path, Fields: fields, Data: data}}
}

// Update returns a Write that replaces a document. The document must still have the version.
func Update(path string, version time.Time, fields map[string]any, data []byte) Write {
	return Write{OpUpdate, Doc{Path: path, Version: version, Fields: fields, Data: data}}
}

// Delete returns a Write that removes a document. The document must still have the version. With a zero version, any
// version is removed, and a missing document is no error.
func Delete(path string, version time.Time) Write {
	return Write{OpDelete, Doc{Path: path, Version: version}}
}

// Check returns a Write that changes nothing. The document must still have the version. With a Check, a commit can
// depend on a document that it does not write.
func Check(path string, version time.Time) Write {
	return Write{OpCheck, Doc{Path: path, Version: version}}
}

// Filter is one condition of a Query. Op is "==", or "<=" or ">=" on the field in OrderBy.
type Filter struct {
	Field string
	Op    string
	Value any
}

// A Query selects documents of one top-level collection that have all the fields it names. A document without the
// OrderBy field is not found; for example, a run that has ended has no "due". A range matches only values of its own
// type. Documents with equal OrderBy values are ordered by ID, in the same direction. The page starts after the
// position After.
type Query struct {
	Collection string
	Where      []Filter
	OrderBy    string // a field, or ByName; required
	Desc       bool
	After      *Cursor
	Limit      int // 1 to MaxLimit
	// Select limits the returned documents to these fields. They then come without data, which is neither read nor
	// sent. If Select is nil, documents are complete.
	Select []string
}

// ByName orders documents by the bytes of their IDs. It is the order for reading a whole collection. Unlike an order by
// time, it needs no index of its own. IDs do not grow with the clock, so the writes of all users do not meet at one end
// of an index.
const ByName = "__name__"

// Cursor is a position in a query's order: the OrderBy value and the ID of the last document seen.
type Cursor struct {
	Value any // nil if the order is ByName
	ID    string
}

// Index is the shape of a query that the store accepts. A test compares infra/firestore-indexes.json with Indexes.
type Index struct {
	Collection string
	Equal      []string
	OrderBy    string
	Desc       bool
}

// Indexes lists all queries that Countersign makes. Every backend refuses any other query.
//
// Firestore takes about 500 writes a second to an index that grows at one end. Therefore, no index that every user's
// requests write to begins with a time. Such an index begins with the user, the run, or a shard (document.Shards). The
// entries of the audit are the exception; see shared/store/README.md.
var Indexes = []Index{
	{Collection: "runs", Equal: []string{"dueShard"}, OrderBy: "due"},
	{Collection: "runs", OrderBy: ByName}, // ops verify checks the chain of every run
	{Collection: "runs", Equal: []string{"uid", "threadId"}, OrderBy: "createdAt", Desc: true},
	{Collection: "runs", Equal: []string{"uid"}, OrderBy: "createdAt"}, // everything stored for one user
	{Collection: "approvals", Equal: []string{"uid", "status"}, OrderBy: "requestedAt", Desc: true},
	{Collection: "threads", Equal: []string{"uid"}, OrderBy: "updatedAt", Desc: true},
	{Collection: "threads", Equal: []string{"dueShard"}, OrderBy: "deleting"},  // deletions in progress
	{Collection: "threads", Equal: []string{"dueShard"}, OrderBy: "updatedAt"}, // threads unused for long
	{Collection: "threads", OrderBy: ByName},
	{Collection: "threads", Equal: []string{"uid"}, OrderBy: "deleting"},
	{Collection: "audit", Equal: []string{"uid"}, OrderBy: "at", Desc: true},
	{Collection: "audit", Equal: []string{"runId"}, OrderBy: "seq"},
	{Collection: "audit", OrderBy: ByName},
	{Collection: "audit", OrderBy: "at"}, // of all chains, for the log that cannot be rewritten (translog)
	{Collection: "audit", Equal: []string{"uid", "runId"}, OrderBy: "seq"},
	{Collection: "audit_heads", OrderBy: ByName},
	{Collection: "users", OrderBy: ByName}, // of a restored copy, like the hosts
	{Collection: "hosts", OrderBy: ByName},
	{Collection: "queue", OrderBy: "due"}, // the embedded queue's, which is never in Firestore
	// written when an account is linked: once for each user, not for each request
	{Collection: "oauth_states", OrderBy: "due"},
	{Collection: "uploads", Equal: []string{"dueShard"}, OrderBy: "due"},
	{Collection: "uploads", Equal: []string{"uid"}, OrderBy: "due"},
}

// A Pinner is a [Store] that can be put back from an older copy of itself, and notices that when it is opened.
type Pinner interface {
	// Pin returns once a copy that was made before the newest commit would be noticed, also after a power failure.
	Pin(ctx context.Context) error
}

// Store is a document store. All methods are safe for concurrent use.
type Store interface {
	// Get reads the documents at the paths in one round trip and returns them in the same order. A document that does
	// not exist has a zero Version.
	Get(ctx context.Context, paths ...string) ([]Doc, error)
	// Query returns at most q.Limit documents in q's order.
	Query(ctx context.Context, q Query) ([]Doc, error)
	// Commit applies all writes or none, in one round trip. If ctx ends, the caller must not change their data
	// afterwards, because the store may still read it. Commit returns each document's new version in the order of the
	// writes; a delete has a zero time, a check the unchanged version. If a precondition fails, it returns ErrConflict
	// and applies nothing. After ErrUnavailable or ctx's own error, either all writes or none may have been applied.
	// Two writes to one path are an error.
	Commit(ctx context.Context, writes ...Write) ([]time.Time, error)
	// Watch returns the document's present state, even if the document does not exist, and then each newer state, until
	// ctx ends, which is no error. If states follow each other faster than they are read, older ones are skipped, but
	// never the newest. No state comes twice or after a newer one. Watch reconnects after a lost connection and
	// delivers the newest state that was missed. An error ends the sequence and means that a retry will not help:
	// [ErrBadPath], a closed store, a missing permission. While the document does not change, Watch costs no read. Each
	// use of the sequence is a new watch.
	Watch(ctx context.Context, path string) iter.Seq2[Doc, error]
	// Close closes the store. Open watches end with an error.
	Close() error
}
