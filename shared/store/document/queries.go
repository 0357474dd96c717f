package document

import (
	"time"

	"github.com/countersign-run/countersign/shared/store"
)

// DueRuns returns a query for the runs in a shard that are due at or before by, the longest overdue first.
func DueRuns(shard int64, by time.Time, limit int) store.Query {
	return store.Query{Collection: Runs, Where: []store.Filter{inShard(shard), until(fieldDue, by)}, OrderBy: fieldDue,
		Limit: limit}
}

// WaitingRuns returns a query for all runs in a shard that have not ended and are not quarantined.
func WaitingRuns(shard int64, limit int) store.Query {
	return DueRuns(shard, Never.Add(-time.Microsecond), limit)
}

// AllRuns returns a query for the runs of all users, ordered by ID.
func AllRuns(limit int) store.Query { return whole(Runs, limit) }

// AllUsers returns a query for all users, ordered by ID.
func AllUsers(limit int) store.Query { return whole(Users, limit) }

// AllHosts returns a query for the hosts of all users, and for the users' lists of hosts, ordered by ID.
func AllHosts(limit int) store.Query { return whole(Hosts, limit) }

// AllThreads returns a query for the threads of all users, ordered by ID.
func AllThreads(limit int) store.Query { return whole(Threads, limit) }

// RunsOf returns a query for the user's runs, oldest first.
func RunsOf(uid string, limit int) store.Query {
	return store.Query{Collection: Runs, Where: []store.Filter{is(fieldUID, uid)}, OrderBy: fieldCreatedAt,
		Limit: limit}
}

// RunsOfThread returns a query for the runs of the user's thread, newest first.
func RunsOfThread(uid, threadID string, limit int) store.Query {
	return store.Query{Collection: Runs, Where: []store.Filter{is(fieldUID, uid), is(fieldThreadID, threadID)},
		OrderBy: fieldCreatedAt, Desc: true, Limit: limit}
}

// ApprovalsOf returns a query for the user's approvals with this status, newest first.
func ApprovalsOf(uid, status string, limit int) store.Query {
	return store.Query{Collection: Approvals, Where: []store.Filter{is(fieldUID, uid), is(fieldStatus, status)},
		OrderBy: fieldRequestedAt, Desc: true, Limit: limit}
}

// WaitingThreads is ApprovalsOf restricted to the fields that name each approval's owner, thread, request time and
// expiry. The documents have no content.
func WaitingThreads(uid, status string, limit int) store.Query {
	q := ApprovalsOf(uid, status, limit)
	q.Select = []string{fieldUID, fieldRequestedAt, fieldThreadID, fieldExpires}
	return q
}

// ThreadsOf returns a query for the user's threads, the most recently used first. Threads that are being deleted are
// left out.
func ThreadsOf(uid string, limit int) store.Query {
	return store.Query{Collection: Threads, Where: []store.Filter{is(fieldUID, uid)}, OrderBy: fieldUpdatedAt,
		Desc:  true,
		Limit: limit}
}

// ThreadsUsed is ThreadsOf restricted to the threads that were last used between from and to, both inclusive. A zero
// time sets no bound.
func ThreadsUsed(uid string, from, to time.Time, limit int) store.Query {
	return within(ThreadsOf(uid, limit), from, to)
}

// within restricts the query's order to a range of times. A zero time sets no bound.
func within(q store.Query, from, to time.Time) store.Query {
	if !from.IsZero() {
		q.Where = append(q.Where, store.Filter{Field: q.OrderBy, Op: ">=", Value: from})
	}
	if !to.IsZero() {
		q.Where = append(q.Where, until(q.OrderBy, to))
	}
	return q
}

// Deletions returns a query for the threads in a shard whose deletion is due for a retry at or before by.
func Deletions(shard int64, by time.Time, limit int) store.Query {
	return store.Query{Collection: Threads, Where: []store.Filter{inShard(shard), until(fieldDeleting, by)},
		OrderBy: fieldDeleting, Limit: limit}
}

// UnusedThreads returns a query for the threads in a shard that were last used at or before by, the longest unused
// first. Threads that are being deleted are left out.
func UnusedThreads(shard int64, by time.Time, limit int) store.Query {
	return store.Query{Collection: Threads, Where: []store.Filter{inShard(shard), until(fieldUpdatedAt, by)},
		OrderBy: fieldUpdatedAt, Limit: limit}
}

// DeletionsOf returns a query for the user's threads that are being deleted.
func DeletionsOf(uid string, limit int) store.Query {
	return store.Query{Collection: Threads, Where: []store.Filter{is(fieldUID, uid)}, OrderBy: fieldDeleting,
		Limit: limit}
}

// AuditOf returns a query for the user's audit entries, newest first.
func AuditOf(uid string, limit int) store.Query {
	return store.Query{Collection: Audit, Where: []store.Filter{is(fieldUID, uid)}, OrderBy: fieldAt, Desc: true,
		Limit: limit}
}

// AuditWithin is AuditOf restricted to the entries written between from and to, both inclusive. A zero time sets no
// bound.
func AuditWithin(uid string, from, to time.Time, limit int) store.Query {
	return within(AuditOf(uid, limit), from, to)
}

// AuditOfChain returns a query for the entries of an audit chain in order. The chain belongs to a run or to a user.
func AuditOfChain(chain string, limit int) store.Query {
	return store.Query{Collection: Audit, Where: []store.Filter{is(fieldRunID, chain)}, OrderBy: fieldSeq, Limit: limit}
}

// AuditOfChainOf returns a query for the entries of an audit chain that belong to the user, in order.
func AuditOfChainOf(uid, chain string, limit int) store.Query {
	return store.Query{Collection: Audit, Where: []store.Filter{is(fieldUID, uid), is(fieldRunID, chain)},
		OrderBy: fieldSeq, Limit: limit}
}

// AllAudit returns a query for the audit entries of all users, chain by chain.
func AllAudit(limit int) store.Query { return whole(Audit, limit) }

// AuditSince returns a query for the audit entries of all users that were written at or after from, oldest first.
func AuditSince(from time.Time, limit int) store.Query {
	return within(store.Query{Collection: Audit, OrderBy: fieldAt, Limit: limit}, from, time.Time{})
}

// AllAuditHeads returns a query for the heads of all chains that are not in a run's document.
func AllAuditHeads(limit int) store.Query { return whole(AuditHeads, limit) }

// EndedConsents returns a query for the OAuth consents that end at or before by.
func EndedConsents(by time.Time, limit int) store.Query {
	return store.Query{Collection: Consents, Where: []store.Filter{until(fieldDue, by)}, OrderBy: fieldDue,
		Limit: limit}
}

// UploadsOf returns a query for the user's uploaded files. Those that no run has come first, the oldest upload before
// the others.
func UploadsOf(uid string, limit int) store.Query {
	return store.Query{Collection: Uploads, Where: []store.Filter{is(fieldUID, uid)}, OrderBy: fieldDue, Limit: limit}
}

// UnusedUploadsOf is UploadsOf restricted to files that no run has.
func UnusedUploadsOf(uid string, limit int) store.Query {
	return within(UploadsOf(uid, limit), time.Time{}, Never.Add(-time.Microsecond))
}

// DueUploads returns a query for the uploaded files and objects in a shard that must be deleted at or before by.
func DueUploads(shard int64, by time.Time, limit int) store.Query {
	return store.Query{Collection: Uploads, Where: []store.Filter{inShard(shard), until(fieldDue, by)},
		OrderBy: fieldDue, Limit: limit}
}

// DueMessages returns a query for the messages of the embedded queue that are due at or before by.
func DueMessages(by time.Time, limit int) store.Query {
	return store.Query{Collection: Queue, Where: []store.Filter{until(fieldDue, by)}, OrderBy: fieldDue, Limit: limit}
}

// AllMessages returns a query for all messages of the embedded queue.
func AllMessages(limit int) store.Query {
	return store.Query{Collection: Queue, OrderBy: fieldDue, Limit: limit}
}

// whole returns a query for a whole collection, ordered by ID.
func whole(collection string, limit int) store.Query {
	return store.Query{Collection: collection, OrderBy: store.ByName, Limit: limit}
}

func inShard(shard int64) store.Filter {
	return store.Filter{Field: fieldDueShard, Op: "==", Value: shard}
}

func is(field, value string) store.Filter { return store.Filter{Field: field, Op: "==", Value: value} }

// until returns a filter for values up to and including at, in the precision that a store keeps: UTC, microseconds.
func until(field string, at time.Time) store.Filter {
	return store.Filter{Field: field, Op: "<=", Value: at.UTC().Truncate(time.Microsecond)}
}
