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

// Bounds of what one user may have.
const (
	MaxHosts     = 50
	MaxTerminals = 20
)

// AuthKind says how a host knows its user.
type AuthKind string

// The kinds of login.
const (
	AuthGenerated  AuthKind = "generated"  // a key pair of our own, whose public half its user puts on the host
	AuthPrivateKey AuthKind = "privateKey" // a private key of the user's
	AuthPassword   AuthKind = "password"
)

// AutoRun says which commands run on a host without being asked about.
type AutoRun string

// The values of AutoRun.
const (
	AutoRunNone     AutoRun = "none"
	AutoRunReadOnly AutoRun = "read_only" // those that only look (shell.ReadOnly)
)

// HostKey is a public key of a host that its user has confirmed.
type HostKey struct {
	Type   string `json:"type"`   // ssh-ed25519, ecdsa-sha2-nistp256, rsa-sha2-512, ...
	SHA256 string `json:"sha256"` // as ssh-keygen -l prints it: SHA256:...
	Key    string `json:"key"`    // base64 of the wire form
}

// A Host is a machine that a user has added, as it is stored.
type Host struct {
	ID        string        `json:"id"`
	UID       string        `json:"uid"`
	Name      string        `json:"name"` // for people
	Address   string        `json:"host"` // a DNS name or an IP address, in its normal form
	Port      int           `json:"port"`
	Username  string        `json:"username"`
	Auth      AuthKind      `json:"auth"`
	Secret    []byte        `json:"secret,omitempty"`    // sealed: a private key or a password (Vault)
	PublicKey string        `json:"publicKey,omitempty"` // of AuthGenerated, as a line of authorized_keys
	Version   string        `json:"version,omitempty"`   // random, new with each secret; connections are kept by it
	HostKeys  []HostKey     `json:"hostKeys"`            // pinned: any other is refused
	AutoRun   AutoRun       `json:"autoRun"`
	ReadPaths []string      `json:"readPaths,omitempty"` // absolute: below these, files may be printed without asking
	Shell     shell.Grammar `json:"shell,omitempty"`     // of the shell that runs commands; empty: not known, bash
	Home      string        `json:"home,omitempty"`      // the home directory, once a command is always allowed
	Programs  []Program     `json:"programs,omitempty"`  // of the commands that are always allowed; the newest last
	CreatedAt time.Time     `json:"createdAt"`
}

// A Program is the file that a command ran when its user always allowed that command.
type Program struct {
	Key  string `json:"key"`  // a hash of the allowed host, directory and words
	File string `json:"file"` // its path, and its SHA-256 where it can be read
}

// MaxPrograms is how many programs of commands that are always allowed a host keeps. A command whose program was
// dropped is asked about again.
const MaxPrograms = 100

// WithoutSecret returns the host without its login secrets, for readers of the other fields.
func (h Host) WithoutSecret() Host {
	h.Secret, h.Version = nil, ""
	return h
}

// NewID returns a random id of a terminal on the host. It names the host, so that both are read in one round trip.
func NewID(hostID string, random io.Reader) string { return hostID + "-" + run.NewID(random) }

// HostOf returns the id of the host that the terminal with the id is on.
func HostOf(terminalID string) (hostID string, ok bool) {
	hostID, _, ok = strings.Cut(terminalID, "-")
	return hostID, ok && run.ValidID(hostID) && run.ValidID(terminalID)
}

// A Terminal is a terminal that a user has opened on a host, as it is stored. Its shell lives on the host.
type Terminal struct {
	ID        string    `json:"id"` // NewID
	UID       string    `json:"uid"`
	HostID    string    `json:"hostId"`
	Cols      int       `json:"cols"`
	Rows      int       `json:"rows"`
	Cwd       string    `json:"cwd,omitempty"` // of the next command of an agent; empty: the home directory
	CreatedAt time.Time `json:"createdAt"`
}
