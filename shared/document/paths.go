// Package document knows how Countersign's documents are laid out in a store: the collections and paths, the fields
// that queries use, the queries themselves, and how a list is read page by page. It knows nothing of what the documents
// mean: their content is JSON of the packages that own them, which Decode reads.
//
// A document's fields repeat what queries need of its content (store.Doc); they are written and read by the Fields
// types alone, so that a name is spelled once.
package document

import (
	"fmt"
	"path"
	"strings"

	"github.com/countersign-run/countersign/shared/store"
)

// The collections.
const (
	Runs         = "runs"
	Threads      = "threads"
	Approvals    = "approvals"
	Users        = "users"
	Audit        = "audit"
	AuditHeads   = "audit_heads"   // the ends of chains that no run's document holds
	Connections  = "connections"   // linked accounts
	Consents     = "oauth_states"  // that users are giving
	Queue        = "queue"         // of the embedded queue
	Hosts        = "hosts"         // that users have added for the terminal agent, and a list of them for each user
	Terminals    = "terminals"     // that are open on them
	TerminalRuns = "terminal_runs" // that have a terminal for themselves
	Sweeps       = "sweeps"        // what sweeps remember
)

// RunPath returns the path of a run.
func RunPath(id string) string { return Runs + "/" + id }

// ThreadPath returns the path of a thread.
func ThreadPath(id string) string { return Threads + "/" + id }

// ApprovalPath returns the path of an approval.
func ApprovalPath(id string) string { return Approvals + "/" + id }

// UserPath returns the path of a user's document. Because of the prefix no uid is a name that a store reserves.
func UserPath(uid string) string { return Users + "/u_" + uid }

// ConnectionPath returns the path of the account that a user has linked at a provider. Google's, which were the first,
// do not name it.
func ConnectionPath(provider, uid string) string {
	if provider == "google" {
		return Connections + "/u_" + uid
	}
	return Connections + "/" + provider + "_" + uid
}

// HostPath returns the path of a host that a user has added. No id has a full stop in it, so no two users have one
// path.
func HostPath(uid, id string) string { return Hosts + "/u_" + uid + "." + id }

// TerminalPath returns the path of a user's terminal.
func TerminalPath(uid, id string) string { return Terminals + "/u_" + uid + "." + id }

// HostListPath returns the path of the list of a user's hosts and terminals.
func HostListPath(uid string) string { return Hosts + "/list_u_" + uid }

// TerminalRunPath returns the path of what names the run that a user's terminal is kept for.
func TerminalRunPath(uid, id string) string { return TerminalRuns + "/u_" + uid + "." + id }

// MessagePath returns the path of a message of the embedded queue.
func MessagePath(id string) string { return Queue + "/" + id }

// AuditPath returns the path of entry seq of a chain.
func AuditPath(chain string, seq int64) string { return fmt.Sprintf("%s/%s_%06d", Audit, chain, seq) }

// AuditHeadPath returns the path of the end of a chain that no run's document holds: a user's own chain, and that of a
// deleted run.
func AuditHeadPath(chain string) string { return AuditHeads + "/" + chain }

// ChunkPath returns the path of the older part of a log that begins with item first. The log is kept in the document;
// collection names its items.
func ChunkPath(document, collection string, first int64) string {
	return fmt.Sprintf("%s/%s/%08d", document, collection, first)
}

// OutputPath returns the path of what is kept of an action's output.
func OutputPath(runID, actionID string) string { return RunPath(runID) + "/outputs/" + actionID }

// OutputPartPath returns the path of the full part of an action's output that begins with byte first.
func OutputPartPath(runID, actionID string, first int64) string {
	return fmt.Sprintf("%s/parts/%08d", OutputPath(runID, actionID), first)
}

// IsChunk reports whether the path is that of a chunk, which never changes once it was written.
func IsChunk(path string) bool { return strings.Count(path, "/") == 3 }

// ID returns the last part of the document's path.
func ID(d store.Doc) string { return path.Base(d.Path) }
