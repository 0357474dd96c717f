// Package keeper starts commands on a host and finds out what became of them (seed 002). A command lives on the host,
// not in the process that asked for it: a script of POSIX sh, the keeper, is put there once and starts each command in
// a terminal and a session of its own, with a journal. So a command survives the connection, is started once, and can
// be asked about later by whoever holds the run.
package keeper

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/countersign-run/countersign/shared/shell"
)

// Size is a terminal's, in characters.
type Size struct{ Cols, Rows int }

// Conn is a connection to a host on which several commands may run at once. An error says that it is not known what
// came of the command, unless it is marked as transient (tool.Transient): then nothing was sent.
type Conn interface {
	// Exec runs a line in the login shell of the host's user, and returns its exit code: 128 and the signal's number
	// where a signal ended it. After it has returned, nothing is written to the streams.
	Exec(ctx context.Context, x Exec) (exit int, err error)
}

// Memory is what a Conn may be, too: it keeps a value as long as its connection to the host is open. It may be used by
// several goroutines.
type Memory interface {
	Recall() any // what was remembered last, or nil
	Remember(v any)
}

// Exec is a line for the login shell, and its streams.
type Exec struct {
	Line   string
	Stdin  io.Reader // nil: nothing
	Stdout io.Writer
	Stderr io.Writer
	PTY    *Size       // nil: no terminal
	Resize <-chan Size // the terminal's later sizes
}

// Facts are what a host says of itself.
type Facts struct {
	OS     string          `json:"os"`     // uname -sr
	Shells []shell.Grammar `json:"shells"` // that are there; bash first
	PTY    bool            `json:"pty"`    // script is there: a command keeps its terminal when the connection is lost
	Proc   bool            `json:"proc"`   // /proc is there: what a command leaves behind is found by it
	Home   string          `json:"home"`   // empty: there is none that can be written to
	Boot   string          `json:"boot"`   // changes with each boot; empty: not known
	Stamp  string          `json:"stamp"`  // random, of the folder of journals; another one if that was made anew
}

// Start is a command that is started.
type Start struct {
	ID       string        // of the action: the name of its journal
	Terminal string        // whose directory and exported variables it begins with and changes; empty: none
	Command  string        // the approved bytes
	Grammar  shell.Grammar // of the shell that runs it
	Plain    bool          // a command that only looks: in a clean environment, and nothing of it carries over
	Cwd      string        // absolute; empty: the home directory
	Limit    time.Duration // after which it is ended
	Size     Size
	Opens    Opens // what a Plain command reads

	// Handle is what Handle returned when the command was prepared: on another host, in another boot or with other
	// journals it is not begun. Empty: what it is now.
	Handle string
	// Asks is told when the command begins to wait for input, and when it does so no longer. It may be nil.
	Asks func(asking bool)
}

// Opens are the files and folders that a command reads or looks at without a person's yes.
//
// What it reads is opened once, before the command begins. What counts is where the descriptor leads, and the command
// reads that: a path may lead elsewhere by then. So a command that names its files as [Opened] reads nothing else,
// whoever changes links meanwhile. It needs Facts.Proc.
type Opens struct {
	Within []string // the folders and files in which all of Paths have to lie, when links are followed
	Paths  []Path   // at most MaxOpens
	Looks  []string // what it looks at without reading it: nothing there may be mounted on demand, or by a user
	Files  bool     // Paths are files alone, and no folders
	Walks  bool     // it goes below the folders: to read there it needs GNU's grep, which follows no link
}

// MaxOpens is how many paths can be opened: a shell of POSIX has ten descriptors.
const MaxOpens = 4

// A Path is one that is opened.
type Path struct {
	Name  string // absolute
	Shown string // for what the command prints in place of Opened
}

// Opened returns by which name the command reads the path with an index.
func Opened(i int) string { return fmt.Sprintf("/proc/self/./fd/%d", firstOpened+i) }

const firstOpened = 4

// Result is how a command ended.
type Result struct {
	Exit     int           // 128 and the signal's number where a signal ended it
	Cwd      string        // the directory after it
	TimedOut bool          // it was ended at its limit
	Stopped  bool          // it was ended by Stop
	Asked    bool          // it was ended because it waited for input, and nobody was there
	Hangup   bool          // it was ended because its connection was lost (only where Facts.PTY is false)
	Took     time.Duration // by the host's clock
	Left     int           // processes that it had left behind, which were ended
	Ended    []string      // what the first of these call themselves, if the host says so
	Bytes    int64         // that it printed in all; the host keeps the first MiB and the last 192 KiB
}

// State is what a host says of a command.
type State string

// The states. Only Done has a Result.
const (
	Done    State = "done"    // it has ended
	Running State = "running" // it is under way
	Lost    State = "lost"    // it was begun, nothing runs any more, and no exit code was written
	Absent  State = "absent"  // it was not begun, on this host and in this boot; Start may be called
	Never   State = "never"   // it was not begun and never will be: Start is refused from now on
	Unknown State = "unknown" // the host was started anew, or its journals are gone
)
