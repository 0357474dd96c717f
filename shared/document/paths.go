// Package document knows how Countersign's documents lie in a store: the collections and paths, the fields that queries
// use, the queries themselves, and how a list is read page by page. It knows nothing of what the documents mean: their
// content is JSON of the packages that own them, which Decode reads.
//
// A document's fields repeat what queries need of its content (store.Doc); they are written and read by the Fields
// types alone, so that a name is spelled once.
package document

import (
	"fmt"
	"path"

	"github.com/countersign-run/countersign/shared/store"
)

// The collections.
const (
	Runs        = "runs"
	Threads     = "threads"
	Approvals   = "approvals"
	Users       = "users"
	Audit       = "audit"
	AuditHeads  = "audit_heads"  // the ends of chains that no run's document holds
	Connections = "connections"  // linked accounts
	Consents    = "oauth_states" // that users are giving
	Queue       = "queue"        // of the embedded queue
)

// RunPath is the path of a run.
func RunPath(id string) string { return Runs + "/" + id }

// ThreadPath is the path of a thread.
func ThreadPath(id string) string { return Threads + "/" + id }

// ApprovalPath is the path of an approval.
func ApprovalPath(id string) string { return Approvals + "/" + id }

// UserPath is the path of what is kept of a user. The prefix keeps a uid from being a name that a store reserves.
func UserPath(uid string) string { return Users + "/u_" + uid }

// ConnectionPath is the path of the account that a user has linked.
func ConnectionPath(uid string) string { return Connections + "/u_" + uid }

// MessagePath is the path of a message of the embedded queue.
func MessagePath(id string) string { return Queue + "/" + id }

// AuditPath is the path of entry seq of a chain.
func AuditPath(chain string, seq int64) string { return fmt.Sprintf("%s/%s_%06d", Audit, chain, seq) }

// AuditHeadPath is the path of the end of a chain that has no run's document to lie in: a user's own, and that of a run
// that was deleted.
func AuditHeadPath(chain string) string { return AuditHeads + "/" + chain }

// ChunkPath is the path of the older part of a log that begins with item first. The log lies in the document;
// collection is what its items are.
func ChunkPath(document, collection string, first int64) string {
	return fmt.Sprintf("%s/%s/%08d", document, collection, first)
}

// ID is the last part of the document's path.
func ID(d store.Doc) string { return path.Base(d.Path) }
