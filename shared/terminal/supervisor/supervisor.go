// Package supervisor starts commands on a host and finds out their outcome (seed 002). A command runs on the host and
// does not depend on the process that requested it. The keeper, a script in POSIX sh, is installed on the host once. It
// starts each command in a terminal and a session of its own, and records it in a journal. A command therefore survives
// the connection and is started only once, and any process that holds the run can ask for its outcome later.
package supervisor

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/countersign-run/countersign/shared/terminal/shell"
)

// Size is the size of a terminal, in characters.
type Size struct{ Cols, Rows int }

// Conn is a connection to a host. Several commands may run on it at once. After an error, the outcome of the command is
// unknown, unless the error is marked as transient (tool.Transient): then nothing was sent.
type Conn interface {
	// Exec runs a line in the login shell of the host's user, and returns the exit code. If a signal ended the line,
	// the code is 128 plus the signal's number. After Exec has returned, nothing is written to the streams.
	Exec(ctx context.Context, x Exec) (exit int, err error)
}

// Memory is an optional interface of a Conn. It stores one value as long as the connection to the host is open. It is
// safe for concurrent use.
type Memory interface {
	Recall() any // returns the last remembered value, or nil
	Remember(v any)
}

// Exec is a line for the login shell, with its streams.
type Exec struct {
	Line   string
	Stdin  io.Reader // nil: empty input
	Stdout io.Writer
	Stderr io.Writer
	PTY    *Size       // nil: no terminal
	Resize <-chan Size // later sizes of the terminal
}

// Facts is a host's report about itself.
type Facts struct {
	OS     string          `json:"os"`     // uname -sr
	Shells []shell.Grammar `json:"shells"` // the available shells; bash first
	// PTY means that script(1) is available: a command keeps its terminal when the connection is lost.
	PTY  bool   `json:"pty"`
	Proc bool   `json:"proc"` // /proc is available: processes that a command leaves behind can be found
	Home string `json:"home"` // empty: no writable home directory
	Boot string `json:"boot"` // changes with each boot; empty: unknown
	// Stamp is the random name of the journals' folder. It changes if the folder is made again.
	Stamp string `json:"stamp"`
}

// InList returns the ID of the command with index i in a list, from the ID of the list's action. A list is one action,
// and each of its commands has a journal.
func InList(actionID string, i int) string { return fmt.Sprintf("%s-%d", actionID, i+1) }

// Start is a command to start.
type Start struct {
	ID       string        // the action's ID, which names its journal
	Terminal string        // the terminal that provides and keeps the directory and exported variables; empty: none
	Command  string        // the approved bytes
	Grammar  shell.Grammar // of the shell that runs it
	Plain    bool          // a read-only command: it gets a clean environment, and its changes to that are dropped
	Cwd      string        // absolute; empty: the home directory
	Real     string        // the required path of Cwd without links; empty: any
	Limit    time.Duration // time limit, after which it is stopped
	Size     Size
	Opens    Opens // the files that a Plain command reads
	Pin      Pin   // for a command that runs by a standing permission

	// Handle is the result of [Client.Handle] when the command was prepared. On another host, after a reboot or with
	// other journals, the command is not started. If it is empty, the current handle is used.
	Handle string
	// Asks is called when the command starts to wait for input, and when it stops waiting. It may be nil.
	Asks func(asking bool)
}

// A Pin is the file that a command must run, and the directory without links in which it must run. The host checks both
// in the directory in which it then starts the command, so a link that changes in the meantime has no effect. The zero
// value pins nothing.
type Pin struct {
	Name string // the program's name, as in the command
	File string // the result of [Client.Program]
}

// Opens are the files and folders that a command may read or examine without an approval.
//
// The host opens the files once, before the command starts, and checks the path to which each descriptor leads. The
// command reads that descriptor, because the original path may lead elsewhere by then. A command that names its files
// with [Opened] therefore reads nothing else, even if links change in the meantime. This needs Facts.Proc.
type Opens struct {
	Within []string // all Paths must be in one of these folders or files, after links are resolved
	Paths  []Path   // at most MaxOpens
	Looks  []string // examined, but not read; not on a file system that is mounted on demand or by a user
	Files  bool     // Paths must be files, not folders
	Walks  bool     // the command reads below folders; that needs GNU grep, which follows no links

	// Private is set if the command reads below folders and may follow a link that appears there. Then only the
	// command's user and root may be able to write in the folders.
	Private bool

	// Git is set for a git command that reads the repository of the only path in Looks. The host gives git a copy of
	// the repository's configuration, and refuses the command if the copy has a key that is not known to be harmless.
	Git GitReads
}

// GitReads says which parts of its repository a git command reads.
type GitReads string

// The values of GitReads. With GitTree the command compares the working tree, so the repository must have no
// submodules.
const (
	GitHistory GitReads = "history"
	GitTree    GitReads = "tree"
)

// MaxOpens is the maximum number of opened paths: POSIX guarantees ten descriptors in a shell.
const MaxOpens = 4

// A Path is a path to open.
type Path struct {
	Name  string // absolute
	Shown string // printed by the command in place of [Opened]
}

// Opened returns the file name under which the command reads the path with index i.
func Opened(i int) string { return fmt.Sprintf("/proc/self/./fd/%d", firstOpened+i) }

const firstOpened = 4

// Result describes how a command ended.
type Result struct {
	Exit     int           // if a signal ended it: 128 plus the signal's number
	Cwd      string        // the directory afterwards
	Real     string        // the path of Cwd without links; empty: unknown
	TimedOut bool          // it reached its limit and was ended
	Stopped  bool          // Stop ended it
	Asked    bool          // the host ended it because it waited for input and no user was attached
	Hangup   bool          // the host ended it because its connection was lost (only if Facts.PTY is false)
	Took     time.Duration // by the host's clock
	Left     int           // number of processes that it left behind, which the host ended
	Ended    []string      // names of the first of these processes, if the host reports them
	Bytes    int64         // total size of the output; the host keeps the first 1 MiB and the last 192 KiB
}

// State is the state of a command on the host.
type State string

// The states of a command. Only Done has a Result.
const (
	Done    State = "done"    // it has ended
	Running State = "running" // it is in progress
	Lost    State = "lost"    // it started, no longer runs, and has no recorded exit code
	Absent  State = "absent"  // it has not started, on this host and in this boot; Start may be called
	Never   State = "never"   // it has not started and never will: Start is refused from now on
	Unknown State = "unknown" // the host was restarted, or its journals are missing
)
