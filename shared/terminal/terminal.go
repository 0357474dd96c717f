// Package terminal stores the setup of the terminal agent (seed 002): the hosts that it may log in to, and the open
// terminals on them. It opens no connection.
//
// The other packages of this group work on hosts:
//   - shell judges a command before it runs.
//   - remote connects to hosts over SSH.
//   - supervisor starts a command once and finds out its outcome.
//   - hosts adds, checks and removes hosts, by their users' requests.
//   - attach carries terminals over WebSockets.
package terminal

import (
	"io"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/agent/run"
	"github.com/countersign-run/countersign/shared/terminal/shell"
)

// Limits for one user.
const (
	MaxHosts     = 50
	MaxTerminals = 20
)

// MaxJumps is the maximum number of jump hosts on the way to a host.
const MaxJumps = 3

// AuthKind is the kind of a login to a host.
type AuthKind string

// The kinds of login.
const (
	// a key pair that Countersign generated; its user installs the public half on the host
	AuthGenerated  AuthKind = "generated"
	AuthPrivateKey AuthKind = "privateKey" // the user's own private key
	AuthPassword   AuthKind = "password"
)

// AutoRun says which commands run on a host without approval.
type AutoRun string

// The values of AutoRun.
const (
	AutoRunNone     AutoRun = "none"
	AutoRunReadOnly AutoRun = "read_only" // read-only commands (shell.ReadOnly)
)

// HostKey is a public key of a host that its user has confirmed.
type HostKey struct {
	Type   string `json:"type"`   // ssh-ed25519, ecdsa-sha2-nistp256, rsa-sha2-512, ...
	SHA256 string `json:"sha256"` // as ssh-keygen -l prints it: SHA256:...
	Key    string `json:"key"`    // base64 of the wire form
}

// A Host is a machine that a user has added, in its stored form.
type Host struct {
	ID       string   `json:"id"`
	UID      string   `json:"uid"`
	Name     string   `json:"name"` // a name for people
	Address  string   `json:"host"` // a DNS name or an IP address, in canonical form
	Port     int      `json:"port"`
	Username string   `json:"username"`
	Auth     AuthKind `json:"auth"`
	Secret   []byte   `json:"secret,omitempty"` // sealed: a private key or a password (Vault)
	// Bound means that Secret can be opened only with the present values of the other fields (Confirmed). Hosts of
	// earlier releases are not bound until their users change them.
	Bound     bool   `json:"bound,omitempty"`
	PublicKey string `json:"publicKey,omitempty"` // for AuthGenerated, as a line of authorized_keys
	// random, and new with each secret; connections are keyed by it
	Version  string    `json:"version,omitempty"`
	HostKeys []HostKey `json:"hostKeys"` // pinned: any other key is refused, unless it has a certificate
	// a key with a certificate that one of these signed for Address is accepted too
	CertAuthorities []HostKey `json:"certAuthorities,omitempty"`
	RevokedKeys     []HostKey `json:"revokedKeys,omitempty"` // never accepted, as a host's or as an authority's
	// the ID of the user's host that this one is reached through; empty: it is reached directly
	Jump    string  `json:"jump,omitempty"`
	AutoRun AutoRun `json:"autoRun"`
	// Withdrawn means that AutoRun has no effect until the user sets it again: the store was restored from a backup,
	// and the user may have changed AutoRun after that backup. AutoRun keeps its value, because Secret is bound to it.
	Withdrawn bool `json:"withdrawn,omitempty"`
	// absolute paths; files below them can be printed without approval
	ReadPaths []string `json:"readPaths,omitempty"`
	// of the shell that runs commands; empty: unknown, treated as bash
	Shell     shell.Grammar `json:"shell,omitempty"`
	Home      string        `json:"home,omitempty"`     // the home directory; set once a command is always allowed
	Programs  []Program     `json:"programs,omitempty"` // files of the always-allowed commands; the newest is last
	CreatedAt time.Time     `json:"createdAt"`
}

// A Program is the file that a command ran at the time when its user chose to always allow it.
type Program struct {
	Key  string `json:"key"`  // a hash of the allowed host, directory and words
	File string `json:"file"` // its path, and its SHA-256 if it is readable
}

// MaxPrograms is the maximum number of programs that a host stores for always-allowed commands. A command whose program
// was dropped needs approval again.
const MaxPrograms = 100

// Unasked returns which commands currently run on the host without approval.
func (h Host) Unasked() AutoRun {
	if h.Withdrawn {
		return AutoRunNone
	}
	return h.AutoRun
}

// WithoutSecret returns the host without its login secrets, for readers of the other fields.
func (h Host) WithoutSecret() Host {
	h.Secret, h.Version = nil, ""
	return h
}

// NewID returns a random ID for a terminal on the host. It begins with the host's ID, so that both are read in one
// round trip.
func NewID(hostID string, random io.Reader) string { return hostID + "-" + run.NewID(random) }

// HostOf returns the ID of the host from a terminal's ID.
func HostOf(terminalID string) (hostID string, ok bool) {
	hostID, _, ok = strings.Cut(terminalID, "-")
	return hostID, ok && run.ValidID(hostID) && run.ValidID(terminalID)
}

// A Terminal is a terminal that a user has opened on a host, in its stored form. Its shell runs on the host.
type Terminal struct {
	ID        string    `json:"id"` // NewID
	UID       string    `json:"uid"`
	HostID    string    `json:"hostId"`
	Cols      int       `json:"cols"`
	Rows      int       `json:"rows"`
	Cwd       string    `json:"cwd,omitempty"`  // for the agent's next command; empty: the home directory
	Real      string    `json:"real,omitempty"` // the path of Cwd without links, after the last command; empty: unknown
	CreatedAt time.Time `json:"createdAt"`
}
