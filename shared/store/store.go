// Package store is where Countersign keeps its documents: reads by path, the few queries named in Indexes, and Commit,
// which makes several writes true together or none of them. It is as strict as Firestore (and no stricter), so that a
// second backend (shared/store/embedded, one SQLite file) cannot hide what the first (shared/store/firestore) would
// refuse; storetest holds both to it.
//
// A document has a path ("runs/abc", "runs/abc/events/000001"), a few typed Fields (all that a query may look at), and
// Data: JSON, kept byte for byte. There is no interactive transaction: a transition reads, decides, and commits with
// the versions it has read; a conflict means read again, decide again.
package store

import (
	"context"
	"errors"
	"time"
)

// The limits that both backends enforce before anything is sent (reliability §0.5): the Go client of Firestore retries a
// commit that is too large until its deadline, so it must never leave the process.
const (
	MaxDoc    = 900 << 10 // bytes of one document: path, fields and data
	MaxCommit = 3 << 20   // bytes of all writes of one commit
	MaxWrites = 500       // writes in one commit
	MaxReads  = 500       // paths in one Get
	MaxLimit  = 1000      // documents of one Query
)

// The sentinels. Any other error of a backend is wrapped in ErrUnavailable where a retry may help.
var (
	ErrConflict    = errors.New("store: the document is not as it was read")  // a precondition failed: read again, decide again
	ErrTooLarge    = errors.New("store: document or commit over the limit")   // MaxDoc, MaxCommit, MaxWrites or MaxReads
	ErrBadPath     = errors.New("store: not a document path")                 // see ValidPath
	ErrInvalid     = errors.New("store: not a write or query it accepts")     // see CheckCommit and CheckQuery: a mistake of the program
	ErrUnavailable = errors.New("store: the backend does not answer for now") // down, overloaded or out of time; a commit may or may not be true
)

// Doc is one document.
type Doc struct {
	Path     string
	Fields   map[string]any // string up to 1500 bytes, int64, bool or time.Time (cut to microseconds, UTC): what queries look at
	Data     []byte         // JSON in UTF-8, kept byte for byte
	Version  time.Time      // of the last write, by the store's clock; zero when the document does not exist; each write has a later one
	ReadTime time.Time      // when it was read, by the store's clock, also for a document that does not exist; never before an earlier Version
}

// Exists reports whether the document was there when it was read.
func (d Doc) Exists() bool { return !d.Version.IsZero() }

// Op is what a Write does.
type Op int

// The operations.
const (
	OpCreate Op = iota + 1 // the document must not exist
	OpUpdate               // the document must still have Doc.Version
	OpDelete               // the document must still have Doc.Version; a zero Version deletes whatever is there
)

// Write is one part of a commit.
type Write struct {
	Op  Op
	Doc Doc
}

// Create writes a document that must not exist.
func Create(path string, fields map[string]any, data []byte) Write {
	return Write{OpCreate, Doc{Path: path, Fields: fields, Data: data}}
}

// Update replaces a document that must still have the version.
func Update(path string, version time.Time, fields map[string]any, data []byte) Write {
	return Write{OpUpdate, Doc{Path: path, Version: version, Fields: fields, Data: data}}
}

// Delete removes a document that must still have the version; with a zero version it removes whatever is there.
func Delete(path string, version time.Time) Write {
	return Write{OpDelete, Doc{Path: path, Version: version}}
}

// Filter is one condition of a Query. Op is "==", or "<=" or ">=" on the field of OrderBy.
type Filter struct {
	Field string
	Op    string
	Value any
}

// Query asks for documents of one top-level collection that have all the fields it names; one without the field of
// OrderBy is not found (so a run that is over has no "due"). A range finds values of its own type only. Ties in OrderBy are broken by the document's id, in the same
// direction. After continues behind the last document of the page before.
type Query struct {
	Collection string
	Where      []Filter
	OrderBy    string // a field; required
	Desc       bool
	After      *Cursor
	Limit      int // 1 to MaxLimit
}

// Cursor is a place in a query's order: the value of OrderBy and the id of the last document seen.
type Cursor struct {
	Value any
	ID    string
}

// Index is the shape of a query that the store may be asked; infra/firestore-indexes.json is held to this list by a test.
type Index struct {
	Collection string
	Equal      []string
	OrderBy    string
	Desc       bool
}

// Indexes are all the queries that Countersign issues. Both backends refuse any other.
var Indexes = []Index{
	{Collection: "runs", OrderBy: "due"},
	{Collection: "runs", OrderBy: "createdAt"}, // scripts/audit holds every run to its chain
	{Collection: "runs", Equal: []string{"uid", "threadId"}, OrderBy: "createdAt", Desc: true},
	{Collection: "runs", Equal: []string{"uid"}, OrderBy: "createdAt"},       // all that is kept of one user
	{Collection: "runs", Equal: []string{"uid", "threadId"}, OrderBy: "due"}, // those of a conversation that have not ended
	{Collection: "approvals", Equal: []string{"uid", "status"}, OrderBy: "requestedAt", Desc: true},
	{Collection: "threads", Equal: []string{"uid"}, OrderBy: "updatedAt", Desc: true},
	{Collection: "threads", OrderBy: "deleting"}, // deletions that were begun
	{Collection: "threads", Equal: []string{"uid"}, OrderBy: "deleting"},
	{Collection: "audit", Equal: []string{"uid"}, OrderBy: "at", Desc: true},
	{Collection: "audit", Equal: []string{"runId"}, OrderBy: "seq"},
	{Collection: "audit", OrderBy: "at"},
	{Collection: "audit", Equal: []string{"uid", "runId"}, OrderBy: "seq"},
	{Collection: "audit_heads", OrderBy: "at"},
	{Collection: "queue", OrderBy: "due"},
	{Collection: "oauth_states", OrderBy: "due"},
}

// Store is the port. All methods are safe for concurrent use.
type Store interface {
	// Get reads the documents at the paths in one round trip, in the order given; one that does not exist has a zero Version.
	Get(ctx context.Context, paths ...string) ([]Doc, error)
	// Query gives at most q.Limit documents in q's order.
	Query(ctx context.Context, q Query) ([]Doc, error)
	// Commit makes all writes true, or none, in one round trip, and gives each document's new version in the order of
	// the writes (a zero time for a delete). A failed precondition is ErrConflict, and then nothing of the commit is
	// true. After ErrUnavailable or ctx's own error all of it may be true or none of it. Two writes of one path are refused.
	Commit(ctx context.Context, writes ...Write) ([]time.Time, error)
	Close() error
}
