package document

import (
	"hash/fnv"
	"maps"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/store"
)

// The names of the stored fields that queries use.
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
	fieldQuarantined = "aside"
	fieldSeq         = "seq"
	fieldAt          = "at"
	fieldExpireAt    = "expireAt"
	fieldExpires     = "expires"
)

// Shards is the number of parts into which the due runs and threads are split. Firestore takes about 500 writes a
// second to an index that grows at one end, as an index on a time does
// (https://firebase.google.com/docs/firestore/best-practices). Each shard has an end of its own.
const Shards = 64

// Shard returns the shard of the run or thread with this ID, from 0 to Shards-1.
func Shard(id string) int64 {
	h := fnv.New32a()
	h.Write([]byte(id))
	return int64(h.Sum32() % Shards)
}

// WithShard returns the fields of a run's or thread's document with the shard added. needed is false if the document
// needs no change: it has a shard, as every document does that this release stores, or it is a run that has ended.
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

// RunFields are the stored fields of a run's document.
type RunFields struct {
	UID         string
	ThreadID    string
	Status      string
	CreatedAt   time.Time
	Due         time.Time // when a process must look at the run again; zero if the run has ended
	Tries       int64     // consecutive failures to read or advance the run
	Quarantined bool      // quarantined after too many failures: due at Never until it is redriven
}

// Never is the due time of a quarantined run, so that no sweep requests it. The run keeps a due time because a run
// without one has ended.
var Never = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// Map returns the stored fields of the run with this ID, without zero values.
func (f RunFields) Map(id string) map[string]any {
	m := map[string]any{fieldUID: f.UID, fieldThreadID: f.ThreadID, fieldStatus: f.Status, fieldCreatedAt: f.CreatedAt}
	if !f.Due.IsZero() {
		m[fieldDue], m[fieldDueShard] = f.Due, Shard(id)
	}
	if f.Tries > 0 {
		m[fieldTries] = f.Tries
	}
	if f.Quarantined {
		m[fieldQuarantined] = true
	}
	return m
}

// RunFieldsOf reads the fields of a run's document. A field that is absent or has another type becomes zero.
func RunFieldsOf(d store.Doc) RunFields {
	return RunFields{
		UID: field[string](d, fieldUID), ThreadID: field[string](d, fieldThreadID),
		Status:    field[string](d, fieldStatus),
		CreatedAt: field[time.Time](d, fieldCreatedAt), Due: field[time.Time](d, fieldDue),
		Tries: field[int64](d, fieldTries), Quarantined: field[bool](d, fieldQuarantined),
	}
}

// putTime sets a field, unless the time is zero.
func putTime(m map[string]any, name string, t time.Time) {
	if !t.IsZero() {
		m[name] = t
	}
}

// ThreadFields are the stored fields of a thread's document. A thread that is being deleted has no UpdatedAt, so no
// list shows it.
type ThreadFields struct {
	UID       string
	UpdatedAt time.Time
	Deleting  time.Time // when the deletion is retried; zero if the thread is not being deleted
}

// Map returns the stored fields of the thread with this ID, without zero values.
func (f ThreadFields) Map(id string) map[string]any {
	m := map[string]any{fieldUID: f.UID, fieldDueShard: Shard(id)}
	putTime(m, fieldUpdatedAt, f.UpdatedAt)
	putTime(m, fieldDeleting, f.Deleting)
	return m
}

// ThreadFieldsOf reads the fields of a thread's document. A field that is absent or has another type becomes zero.
func ThreadFieldsOf(d store.Doc) ThreadFields {
	return ThreadFields{
		UID: field[string](d, fieldUID), UpdatedAt: field[time.Time](d, fieldUpdatedAt),
		Deleting: field[time.Time](d, fieldDeleting),
	}
}

// ApprovalFields are the stored fields of an approval's document.
type ApprovalFields struct {
	UID         string
	RunID       string
	ThreadID    string // empty if an earlier release stored the approval; ExpiresAt is then zero
	Status      string
	RequestedAt time.Time
	ExpiresAt   time.Time // when it can no longer be decided
}

// Map returns the stored fields, without those that are zero.
func (f ApprovalFields) Map() map[string]any {
	m := map[string]any{
		fieldUID: f.UID, fieldRunID: f.RunID, fieldStatus: f.Status, fieldRequestedAt: f.RequestedAt,
	}
	if f.ThreadID != "" {
		m[fieldThreadID] = f.ThreadID
	}
	putTime(m, fieldExpires, f.ExpiresAt)
	return m
}

// ApprovalFieldsOf reads the fields of an approval's document. A field that is absent or has another type becomes zero.
func ApprovalFieldsOf(d store.Doc) ApprovalFields {
	return ApprovalFields{
		UID: field[string](d, fieldUID), RunID: field[string](d, fieldRunID), Status: field[string](d, fieldStatus),
		ThreadID: field[string](d, fieldThreadID), RequestedAt: field[time.Time](d, fieldRequestedAt),
		ExpiresAt: field[time.Time](d, fieldExpires),
	}
}

// AuditFields are the stored fields of an audit entry's document.
type AuditFields struct {
	UID   string
	RunID string // or the ID of a user's own chain
	Seq   int64
	At    time.Time

	ExpireAt time.Time // when the entry may be deleted; zero means never
}

// Map returns the stored fields, without ExpireAt if it is zero.
func (f AuditFields) Map() map[string]any {
	m := map[string]any{fieldUID: f.UID, fieldRunID: f.RunID, fieldSeq: f.Seq, fieldAt: f.At}
	putTime(m, fieldExpireAt, f.ExpireAt)
	return m
}

// AuditFieldsOf reads the fields of an audit entry's document. A field that is absent or has another type becomes zero.
func AuditFieldsOf(d store.Doc) AuditFields {
	return AuditFields{
		UID: field[string](d, fieldUID), RunID: field[string](d, fieldRunID), Seq: field[int64](d, fieldSeq),
		At: field[time.Time](d, fieldAt), ExpireAt: field[time.Time](d, fieldExpireAt),
	}
}

// AuditHeadFields returns the fields of the head of an audit chain: the time of its last entry, and the time from which
// it may be deleted. A zero expires means never.
func AuditHeadFields(at, expires time.Time) map[string]any {
	m := map[string]any{fieldAt: at}
	putTime(m, fieldExpireAt, expires)
	return m
}

// Expired reports whether the document of an audit entry or of a chain's head may be deleted at now.
func Expired(d store.Doc, now time.Time) bool {
	at := field[time.Time](d, fieldExpireAt)
	return !at.IsZero() && !at.After(now)
}

// ConsentFields returns the fields of an OAuth consent that ends at this time. Firestore's TTL policy uses expireAt and
// deletes within a day. The sweep uses due and deletes within a minute, on every store.
func ConsentFields(ends time.Time) map[string]any {
	return map[string]any{fieldExpireAt: ends, fieldDue: ends}
}

// ConsentEnds returns the time at which the consent in the document ends.
func ConsentEnds(d store.Doc) time.Time { return field[time.Time](d, fieldExpireAt) }

// UploadFields returns the fields of the uploaded file with this ID, which is deleted at due, or never while a run has
// it ([Never]). The document of an object without a file has no uid.
func UploadFields(id, uid string, due time.Time) map[string]any {
	m := map[string]any{fieldDue: due, fieldDueShard: Shard(id)}
	if uid != "" {
		m[fieldUID] = uid
	}
	return m
}

// MessageFields returns the fields of a queue message that is delivered at due.
func MessageFields(due time.Time) map[string]any { return map[string]any{fieldDue: due} }

// field returns the named field of the document, or the zero value if it is absent or has another type.
func field[T any](d store.Doc, name string) T {
	v, _ := d.Fields[name].(T)
	return v
}
