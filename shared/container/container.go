// Package container says what the containers are in which agents work: to whom they belong, what they may use, and what
// is read of them. It has no client of an engine in it (package docker), so that a program which only judges and shows
// calls links none.
package container

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"time"
)

// What each container may use, whatever is asked for.
const (
	User       = "1000:1000" // the uid and gid of all that runs in it
	Work       = "/work"     // the one directory that can be written to, in memory; HOME and TMPDIR too
	MinMemory  = 16 << 20    // bytes
	MaxMemory  = 2 << 30     // with Work, which takes half of it at most
	CPUs       = 1
	Pids       = 256
	PerRun     = 3 // containers
	PerUser    = 9 // containers, in all runs that have not ended
	NamePrefix = "countersign-"
)

// Limits of the processes in a container, as those of setrlimit.
const (
	SoftFiles = 1024
	HardFiles = 4096
	Processes = 1024 // of the uid, in all containers of the engine that share it
)

// Owner is the run to which containers belong, and whose that is. A container of any other is missing.
type Owner struct{ UID, RunID string }

// Key is what the engine knows the owner's user by: it says nothing of them.
func (o Owner) Key() string {
	sum := sha256.Sum256([]byte("countersign container " + o.UID))
	return base64.RawURLEncoding.EncodeToString(sum[:18])
}

// Spec is what a container is created by. What it does not say nobody can ask for.
type Spec struct {
	Name     string // one for each action that creates one
	ActionID string
	Image    string
	Command  []string // nil: one that waits
	Env      []string // NAME=value
	Memory   int64    // bytes
	Group    string   // may be empty
}

// State is what a container does.
type State string

// The states that make a difference here; the engine has others between them.
const (
	Created State = "created" // it was never started
	Running State = "running"
)

// Container is one of the owner's.
type Container struct {
	ID        string // of 64 hexadecimal digits
	RunID     string
	ActionID  string // of the action that created it
	Image     string
	Group     string
	State     State
	CreatedAt time.Time
}

// Process is one in a container beside its own: an exec. The engine starts each once.
type Process struct {
	Started  bool
	Running  bool
	ExitCode int // once it has ended
}

// Streams take what a process prints, as it comes.
type Streams struct{ Stdout, Stderr io.Writer }

// What an engine answers that is no failure.
var (
	ErrMissing = errors.New("container: there is none, or it is another owner's")
	ErrTaken   = errors.New("container: the name is taken")
)
