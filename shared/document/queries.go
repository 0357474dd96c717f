package document

import (
	"time"

	"github.com/countersign-run/countersign/shared/store"
)

// DueRuns returns the query of the runs of a shard that should have been looked at by a time, the longest overdue
// first.
func DueRuns(shard int64, by time.Time, limit int) store.Query {
	return store.Query{Collection: Runs, Where: []store.Filter{inShard(shard), until(fieldDue, by)}, OrderBy: fieldDue,
		Limit: limit}
}

// WaitingRuns returns the query of all runs of a shard that have not ended and were not put aside.
func WaitingRuns(shard int64, limit int) store.Query {
	return DueRuns(shard, Never.Add(-time.Microsecond), limit)
}

// AllRuns returns the query of the runs of all users, by their ids.
func AllRuns(limit int) store.Query { return whole(Runs, limit) }

// AllThreads returns the query of the threads of all users, by their ids.
func AllThreads(limit int) store.Query { return whole(Threads, limit) }

// RunsOf returns the query of the user's runs, oldest first.
func RunsOf(uid string, limit int) store.Query {
	return store.Query{Collection: Runs, Where: []store.Filter{is(fieldUID, uid)}, OrderBy: fieldCreatedAt,
		Limit: limit}
}

// RunsOfThread returns the query of the runs of the user's thread, newest first.
func RunsOfThread(uid, threadID string, limit int) store.Query {
	return store.Query{Collection: Runs, Where: []store.Filter{is(fieldUID, uid), is(fieldThreadID, threadID)},
		OrderBy: fieldCreatedAt, Desc: true, Limit: limit}
}

// ApprovalsOf returns the query of the user's approvals that have the status, newest first.
func ApprovalsOf(uid, status string, limit int) store.Query {
	return store.Query{Collection: Approvals, Where: []store.Filter{is(fieldUID, uid), is(fieldStatus, status)},
		OrderBy: fieldRequestedAt, Desc: true, Limit: limit}
}

// WaitingThreads returns the query of those of ApprovalsOf with the ids of their threads, and without what is asked.
func WaitingThreads(uid, status string, limit int) store.Query {
	q := ApprovalsOf(uid, status, limit)
	q.Select = []string{fieldUID, fieldRequestedAt, fieldThreadID, fieldExpires}
	return q
}

// ThreadsOf returns the query of the user's threads, except those that are being deleted, the last used first.
func ThreadsOf(uid string, limit int) store.Query {
	return store.Query{Collection: Threads, Where: []store.Filter{is(fieldUID, uid)}, OrderBy: fieldUpdatedAt,
		Desc:  true,
		Limit: limit}
}

// ThreadsUsed returns the query of those of ThreadsOf that were last used within the time; zero: at any.
func ThreadsUsed(uid string, from, to time.Time, limit int) store.Query {
	return within(ThreadsOf(uid, limit), from, to)
}

// within narrows the query's order to a time; zero: any.
func within(q store.Query, from, to time.Time) store.Query {
	if !from.IsZero() {
		q.Where = append(q.Where, store.Filter{Field: q.OrderBy, Op: ">=", Value: from})
	}
	if !to.IsZero() {
		q.Where = append(q.Where, until(q.OrderBy, to))
	}
	return q
}

// Deletions returns the query of the threads of a shard whose deletion should have been taken up again by a time.
func Deletions(shard int64, by time.Time, limit int) store.Query {
	return store.Query{Collection: Threads, Where: []store.Filter{inShard(shard), until(fieldDeleting, by)},
		OrderBy: fieldDeleting, Limit: limit}
}

// UnusedThreads returns the query of the threads of a shard that were last used by a time, the longest unused first.
// Those that are being deleted are not among them.
func UnusedThreads(shard int64, by time.Time, limit int) store.Query {
	return store.Query{Collection: Threads, Where: []store.Filter{inShard(shard), until(fieldUpdatedAt, by)},
		OrderBy: fieldUpdatedAt, Limit: limit}
}

// DeletionsOf returns the query of the user's threads that are being deleted.
func DeletionsOf(uid string, limit int) store.Query {
	return store.Query{Collection: Threads, Where: []store.Filter{is(fieldUID, uid)}, OrderBy: fieldDeleting,
		Limit: limit}
}

// AuditOf returns the query of the audit entries of the user, newest first.
func AuditOf(uid string, limit int) store.Query {
	return store.Query{Collection: Audit, Where: []store.Filter{is(fieldUID, uid)}, OrderBy: fieldAt, Desc: true,
		Limit: limit}
}

// AuditWithin returns the query of those of AuditOf that were written within the time; zero: at any.
func AuditWithin(uid string, from, to time.Time, limit int) store.Query {
	return within(AuditOf(uid, limit), from, to)
}

// AuditOfChain returns the query of the entries of a chain in their order: those of a run, or of a user's own chain.
func AuditOfChain(chain string, limit int) store.Query {
	return store.Query{Collection: Audit, Where: []store.Filter{is(fieldRunID, chain)}, OrderBy: fieldSeq, Limit: limit}
}

// AuditOfChainOf returns the query of the entries of a chain that are the user's, in their order.
func AuditOfChainOf(uid, chain string, limit int) store.Query {
	return store.Query{Collection: Audit, Where: []store.Filter{is(fieldUID, uid), is(fieldRunID, chain)},
		OrderBy: fieldSeq, Limit: limit}
}

// AllAudit returns the query of the audit entries of all users, chain by chain.
func AllAudit(limit int) store.Query { return whole(Audit, limit) }

// AllAuditHeads returns the query of the ends of all chains that no run's document holds.
func AllAuditHeads(limit int) store.Query { return whole(AuditHeads, limit) }

// EndedConsents returns the query of the consents that have ended by a time.
func EndedConsents(by time.Time, limit int) store.Query {
	return store.Query{Collection: Consents, Where: []store.Filter{until(fieldDue, by)}, OrderBy: fieldDue,
		Limit: limit}
}

// DueMessages returns the query of the messages of the embedded queue that are to be delivered by a time.
func DueMessages(by time.Time, limit int) store.Query {
	return store.Query{Collection: Queue, Where: []store.Filter{until(fieldDue, by)}, OrderBy: fieldDue, Limit: limit}
}

// AllMessages returns the query of all messages of the embedded queue.
func AllMessages(limit int) store.Query {
	return store.Query{Collection: Queue, OrderBy: fieldDue, Limit: limit}
}

// whole returns the query of a whole collection.
func whole(collection string, limit int) store.Query {
	return store.Query{Collection: collection, OrderBy: store.ByName, Limit: limit}
}

func inShard(shard int64) store.Filter {
	return store.Filter{Field: fieldDueShard, Op: "==", Value: shard}
}

func is(field, value string) store.Filter { return store.Filter{Field: field, Op: "==", Value: value} }

// until returns the filter that compares with a time as a store keeps it: UTC, to the microsecond.
func until(field string, at time.Time) store.Filter {
	return store.Filter{Field: field, Op: "<=", Value: at.UTC().Truncate(time.Microsecond)}
}
