package document

import (
	"hash/fnv"
	"maps"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/store"
)

// The names of the fields.
const (
	fieldUID         = "uid"
	fieldThreadID    = "threadId"
	fieldRunID       = "runId"
	fieldStatus      = "status"
	fieldCreatedAt   = "createdAt"
	fieldUpdatedAt   = "updatedAt"
	fieldRequestedAt = "requestedAt"
	fieldDeleting    = "deleting"
	fieldDue         = "due"
	fieldDueShard    = "dueShard"
	fieldTries       = "tries"
	fieldAside       = "aside"
	fieldSeq         = "seq"
	fieldAt          = "at"
	fieldExpireAt    = "expireAt"
	fieldExpires     = "expires"
)

// Shards is the number of parts in which the sweep finds what is due. A store takes some 500 writes a second where an
// index grows at one end (https://firebase.google.com/docs/firestore/best-practices): all users' together, if the index
// began with a time. Each part is such an end of its own.
const Shards = 64

// Shard returns the part of the run or thread with the id.
func Shard(id string) int64 {
	h := fnv.New32a()
	h.Write([]byte(id))
	return int64(h.Sum32() % Shards)
}

// WithShard returns the fields of a run's or thread's document with its shard. Needed is false where it has one, as all
// have that this release stores, or is a run that has ended.
func WithShard(d store.Doc) (fields map[string]any, needed bool) {
	_, has := d.Fields[fieldDueShard]
	_, due := d.Fields[fieldDue]
	if has || !due && strings.HasPrefix(d.Path, Runs+"/") {
		return d.Fields, false
	}
	fields = maps.Clone(d.Fields)
	if fields == nil {
		fields = map[string]any{}
	}
	fields[fieldDueShard] = Shard(ID(d))
	return fields, true
}

// RunFields are the fields of a run's document.
type RunFields struct {
	UID       string
	ThreadID  string
	Status    string
	CreatedAt time.Time
	Due       time.Time // when it must be looked at again; zero: it has ended
	Tries     int64     // how often it could not be read or moved since it last was
	Aside     bool      // that was too often: it is due at Never, until it is redriven
}

// Never is when a run that was put aside is due: no sweep asks for it. It keeps a time, because a run without one has
// ended.
var Never = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// Map returns the fields of the run with the id as a store keeps them, without those that are zero.
func (f RunFields) Map(id string) map[string]any {
	m := map[string]any{fieldUID: f.UID, fieldThreadID: f.ThreadID, fieldStatus: f.Status, fieldCreatedAt: f.CreatedAt}
	if !f.Due.IsZero() {
		m[fieldDue], m[fieldDueShard] = f.Due, Shard(id)
	}
	if f.Tries > 0 {
		m[fieldTries] = f.Tries
	}
	if f.Aside {
		m[fieldAside] = true
	}
	return m
}

// RunFieldsOf returns the fields of a run's document. A field that is absent or of another type is zero.
func RunFieldsOf(d store.Doc) RunFields {
	return RunFields{
		UID: field[string](d, fieldUID), ThreadID: field[string](d, fieldThreadID),
		Status:    field[string](d, fieldStatus),
		CreatedAt: field[time.Time](d, fieldCreatedAt), Due: field[time.Time](d, fieldDue),
		Tries: field[int64](d, fieldTries), Aside: field[bool](d, fieldAside),
	}
}

// ThreadFields are the fields of a thread. While it is being deleted it has no UpdatedAt, so that no list shows it.
type ThreadFields struct {
	UID       string
	UpdatedAt time.Time
	Deleting  time.Time // when its deletion is taken up again; zero: it is not being deleted
}

// Map returns the fields of the thread with the id as a store keeps them, without those that are zero.
func (f ThreadFields) Map(id string) map[string]any {
	m := map[string]any{fieldUID: f.UID, fieldDueShard: Shard(id)}
	if !f.UpdatedAt.IsZero() {
		m[fieldUpdatedAt] = f.UpdatedAt
	}
	if !f.Deleting.IsZero() {
		m[fieldDeleting] = f.Deleting
	}
	return m
}

// ThreadFieldsOf returns the fields of a thread's document. A field that is absent or of another type is zero.
func ThreadFieldsOf(d store.Doc) ThreadFields {
	return ThreadFields{
		UID: field[string](d, fieldUID), UpdatedAt: field[time.Time](d, fieldUpdatedAt),
		Deleting: field[time.Time](d, fieldDeleting),
	}
}

// ApprovalFields are the fields of an approval.
type ApprovalFields struct {
	UID         string
	RunID       string
	ThreadID    string // empty in one that an earlier release stored, as is ExpiresAt
	Status      string
	RequestedAt time.Time
	ExpiresAt   time.Time // when it can no longer be decided
}

// Map returns the fields as a store keeps them, without those that are zero.
func (f ApprovalFields) Map() map[string]any {
	m := map[string]any{
		fieldUID: f.UID, fieldRunID: f.RunID, fieldStatus: f.Status, fieldRequestedAt: f.RequestedAt,
	}
	if f.ThreadID != "" {
		m[fieldThreadID] = f.ThreadID
	}
	if !f.ExpiresAt.IsZero() {
		m[fieldExpires] = f.ExpiresAt
	}
	return m
}

// ApprovalFieldsOf returns the fields of an approval's document. A field that is absent or of another type is zero.
func ApprovalFieldsOf(d store.Doc) ApprovalFields {
	return ApprovalFields{
		UID: field[string](d, fieldUID), RunID: field[string](d, fieldRunID), Status: field[string](d, fieldStatus),
		ThreadID: field[string](d, fieldThreadID), RequestedAt: field[time.Time](d, fieldRequestedAt),
		ExpiresAt: field[time.Time](d, fieldExpires),
	}
}

// AuditFields are the fields of an audit entry.
type AuditFields struct {
	UID   string
	RunID string // or the id of a user's own chain
	Seq   int64
	At    time.Time

	ExpireAt time.Time // when it may be deleted; zero: never
}

// Map returns the fields as a store keeps them.
func (f AuditFields) Map() map[string]any {
	m := map[string]any{fieldUID: f.UID, fieldRunID: f.RunID, fieldSeq: f.Seq, fieldAt: f.At}
	if !f.ExpireAt.IsZero() {
		m[fieldExpireAt] = f.ExpireAt
	}
	return m
}

// AuditFieldsOf returns the fields of an audit entry's document. A field that is absent or of another type is zero.
func AuditFieldsOf(d store.Doc) AuditFields {
	return AuditFields{
		UID: field[string](d, fieldUID), RunID: field[string](d, fieldRunID), Seq: field[int64](d, fieldSeq),
		At: field[time.Time](d, fieldAt), ExpireAt: field[time.Time](d, fieldExpireAt),
	}
}

// AuditHeadFields returns the fields of the end of a chain that was last moved at a time, and may be deleted at
// another; zero: never.
func AuditHeadFields(at, expires time.Time) map[string]any {
	m := map[string]any{fieldAt: at}
	if !expires.IsZero() {
		m[fieldExpireAt] = expires
	}
	return m
}

// Expired reports whether an audit entry's or a head's document may be deleted at the time.
func Expired(d store.Doc, now time.Time) bool {
	at := field[time.Time](d, fieldExpireAt)
	return !at.IsZero() && !at.After(now)
}

// ConsentFields returns the fields of a consent that ends at the time. Firestore's TTL policy goes by expireAt, within
// a day; the sweep goes by due, within a minute and on every store.
func ConsentFields(ends time.Time) map[string]any {
	return map[string]any{fieldExpireAt: ends, fieldDue: ends}
}

// ConsentEnds returns the time at which the document's consent ends.
func ConsentEnds(d store.Doc) time.Time { return field[time.Time](d, fieldExpireAt) }

// MessageFields returns the fields of a message that the queue delivers at the time.
func MessageFields(due time.Time) map[string]any { return map[string]any{fieldDue: due} }

// field returns the document's field, or the zero value of its type.
func field[T any](d store.Doc, name string) T {
	v, _ := d.Fields[name].(T)
	return v
}
