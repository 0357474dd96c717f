// Package document defines how Countersign's documents are laid out in a store: the collections and paths, the fields
// that queries use, the queries, and paging. It does not interpret the documents: their content is JSON that belongs to
// other packages and is read by Decode.
//
// A document's fields copy those parts of its content that queries need (store.Doc). Only the Fields types read and
// write them, so each name is spelled once.
package document

import (
	"fmt"
	"path"
	"strings"

	"github.com/countersign-run/countersign/shared/store"
)

// The names of the collections.
const (
	Runs         = "runs"
	Threads      = "threads"
	Approvals    = "approvals"
	Users        = "users"
	Audit        = "audit"
	AuditHeads   = "audit_heads"   // heads of audit chains that are not in a run's document
	Connections  = "connections"   // linked accounts
	Consents     = "oauth_states"  // OAuth consents in progress
	Queue        = "queue"         // messages of the embedded queue
	Hosts        = "hosts"         // hosts of the terminal agent, and one list of hosts for each user
	Terminals    = "terminals"     // open terminals on those hosts
	TerminalRuns = "terminal_runs" // the run that each terminal is reserved for
	Sweeps       = "sweeps"        // state that sweeps keep between runs
	Notes        = "notes"         // what the assistant remembers, one document for each user
	Deployment   = "deployment"    // state of the whole deployment
	Uploads      = "uploads"       // uploaded files, and objects of such files that must be deleted
	Quotas       = "quotas"        // shared quotas of models
	Passkeys     = "passkeys"      // one document for each user
)

// RunPath returns the path of a run's document.
func RunPath(id string) string { return Runs + "/" + id }

// ThreadPath returns the path of a thread's document.
func ThreadPath(id string) string { return Threads + "/" + id }

// ApprovalPath returns the path of an approval's document.
func ApprovalPath(id string) string { return Approvals + "/" + id }

// UserPath returns the path of a user's document. The prefix keeps a UID from becoming a name that a store reserves.
func UserPath(uid string) string { return Users + "/u_" + uid }

// RestorePath is the path of the record of the store's last restore from a backup.
const RestorePath = Deployment + "/restore"

// QuotaPath returns the path of the shared quota of the named model.
func QuotaPath(model string) string { return Quotas + "/m_" + strings.ReplaceAll(model, "/", "_") }

// ServiceQuotaPath returns the path of the shared quota of a service.
func ServiceQuotaPath(service string) string { return Quotas + "/s_" + service }

// NotesPath returns the path of the document of a user's notes.
func NotesPath(uid string) string { return Notes + "/u_" + uid }

// PasskeysPath returns the path of the document of a user's passkeys.
func PasskeysPath(uid string) string { return Passkeys + "/u_" + uid }

// ConnectionPath returns the path of the account that a user has linked at a provider. Paths for Google do not contain
// the provider's name, because they were the first.
func ConnectionPath(provider, uid string) string {
	if provider == "google" {
		return Connections + "/u_" + uid
	}
	return Connections + "/" + provider + "_" + uid
}

// HostPath returns the path of a host that a user has added. IDs contain no full stop, so two users never share a path.
func HostPath(uid, id string) string { return Hosts + "/u_" + uid + "." + id }

// TerminalPath returns the path of a user's terminal.
func TerminalPath(uid, id string) string { return Terminals + "/u_" + uid + "." + id }

// HostListPath returns the path of the list of a user's hosts and terminals.
func HostListPath(uid string) string { return Hosts + "/list_u_" + uid }

// IsHostList reports whether the path is that of a list of hosts and terminals. Lists are among the hosts.
func IsHostList(path string) bool { return strings.HasPrefix(path, HostListPath("")) }

// TerminalRunPath returns the path of the document that names the run a user's terminal is reserved for.
func TerminalRunPath(uid, id string) string { return TerminalRuns + "/u_" + uid + "." + id }

// MessagePath returns the path of a message of the embedded queue.
func MessagePath(id string) string { return Queue + "/" + id }

// AuditPath returns the path of entry seq of an audit chain.
func AuditPath(chain string, seq int64) string { return fmt.Sprintf("%s/%s_%06d", Audit, chain, seq) }

// AuditHeadPath returns the path of the head of a chain that is not in a run's document: a user's own chain, or the
// chain of a deleted run.
func AuditHeadPath(chain string) string { return AuditHeads + "/" + chain }

// ChunkPath returns the path of the chunk of a log that begins with item first. document is the path of the document
// that owns the log; collection names the kind of item.
func ChunkPath(document, collection string, first int64) string {
	return fmt.Sprintf("%s/%s/%08d", document, collection, first)
}

// OutputPath returns the path of the stored output of an action.
func OutputPath(runID, actionID string) string { return RunPath(runID) + "/outputs/" + actionID }

// OutputPartPath returns the path of the full part of an action's output that begins at byte first.
func OutputPartPath(runID, actionID string, first int64) string {
	return fmt.Sprintf("%s/parts/%08d", OutputPath(runID, actionID), first)
}

// FilePath returns the path of a part of the files of a run's prompt. Parts are numbered from 1.
func FilePath(runID string, part int) string { return ChunkPath(RunPath(runID), "files", int64(part)) }

// UploadPath returns the path of an uploaded file.
func UploadPath(id string) string { return Uploads + "/" + id }

// WastePath returns the path of the document that has an object deleted.
func WastePath(objectID string) string { return Uploads + "/waste_" + objectID }

// IsChunk reports whether the path is that of a chunk document. A chunk never changes after it was written.
func IsChunk(path string) bool { return strings.Count(path, "/") == 3 }

// ID returns the last part of the document's path.
func ID(d store.Doc) string { return path.Base(d.Path) }
