// Package container defines the containers in which agents work: their owners, their limits, and the files and output
// read from them. It contains no client of a container engine (see package docker), so that programs that only check
// and show calls do not link one.
package container

import (
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"io"
	"time"
)

// Limits and settings of every container, whatever is requested.
const (
	User         = "1000:1000" // uid and gid of all processes
	Work         = "/work"     // the only writable directory, in memory; also HOME and TMPDIR
	Dependencies = "/deps"     // where a volume is, read-only except for the container that fills it
	MinMemory    = 16 << 20    // bytes
	MaxMemory    = 2 << 30     // bytes, including Work, which takes at most half of it
	CPUs         = 1
	Pids         = 256
	PerRun       = 3 // containers of one run
	PerUser      = 9 // containers of one user, in all runs that have not ended
	NamePrefix   = "countersign-"
	Volumes      = 3 // of one run
)

// Limits of the processes in a container, as in setrlimit.
const (
	SoftFiles = 1024
	HardFiles = 4096
	Processes = 1024 // limit for the uid, in all containers of the engine that share it
)

// Owner is the run that containers belong to, with the run's user. Containers of other owners are treated as missing.
type Owner struct{ UID, RunID string }

// Key returns the engine's name for the owner's user. The name reveals nothing about the user.
func (o Owner) Key() string {
	sum := sha256.Sum256([]byte("countersign container " + o.UID))
	return base64.RawURLEncoding.EncodeToString(sum[:18])
}

// Spec describes a container to create. Nothing else about a container can be chosen.
type Spec struct {
	Name     string // unique for each action that creates a container
	ActionID string
	Image    string
	Command  []string // nil: a container that only waits
	Env      []string // NAME=value
	Memory   int64    // bytes
	Group    string   // may be empty
	Volume   string   // name of a volume of the owner, at Dependencies; may be empty
	Fills    bool     // the container may write to the volume
	Offline  bool     // it has no network, whatever network other containers have
}

// Volume is a directory of an owner that outlives its containers.
type Volume struct {
	Name string // unique for each content
	Kind string // of the content
}

// State is the state of a container.
type State string

// The states that matter here. The engine has other states too.
const (
	Created State = "created" // it was never started
	Running State = "running"
)

// Container is a container, as the engine reports it to its owner.
type Container struct {
	ID        string // 64 hexadecimal digits
	RunID     string
	ActionID  string // ID of the action that created it
	Image     string
	Group     string
	State     State
	CreatedAt time.Time
}

// Process is an additional process in a container: an exec. The engine starts each one once.
type Process struct {
	Started  bool
	Running  bool
	ExitCode int // valid once it has ended
}

// Streams receive the output of a process while it arrives.
type Streams struct{ Stdout, Stderr io.Writer }

// Answers of an engine that are not failures.
var (
	ErrMissing = errors.New("container: not found, or owned by another user")
	ErrTaken   = errors.New("container: the name is taken")
)
