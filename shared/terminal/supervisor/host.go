package supervisor

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/countersign-run/countersign/shared/base/clip"
	"github.com/countersign-run/countersign/shared/base/lazyregexp"
	"github.com/countersign-run/countersign/shared/terminal/shell"
)

//go:embed keeper.sh
var script string

// Version is the SHA-256 of the script, in hexadecimal.
var Version = func() string {
	sum := sha256.Sum256([]byte(script))
	return hex.EncodeToString(sum[:])
}()

// Errors for a command that the host refuses to begin or to report on. Except for ErrLost, the call that returns one
// of them did not begin the command.
var (
	ErrBegun = errors.New("the command has already started")
	ErrNever = errors.New("the command did not start and never will")
	ErrOther = errors.New("the host was restarted, or its journals are missing")
	ErrCwd   = errors.New("the command's directory does not exist")
	ErrHome  = errors.New("the home directory cannot be written to")
	ErrShell = errors.New("the command's shell does not exist")
	ErrCut   = errors.New("the connection was lost before the host had the whole command")
	ErrEnded = errors.New("the command has ended")
	ErrLost  = errors.New("the command started, but its outcome is unknown")

	ErrOutside = errors.New("a path leads outside the folders that may be read")
	ErrSpecial = errors.New("a path leads to something that is neither a file nor a folder")
	ErrMissing = errors.New("a path does not exist, or cannot be opened")
	ErrMounted = errors.New("a path leads to a mount made on demand or by a user, or through another process")
	ErrWalk    = errors.New("the host's grep may follow links below a folder")
	ErrShared  = errors.New("another user can write below a folder, or it has links in place of lists of files")
	ErrGit     = errors.New("a repository can make git run another program")
	ErrProgram = errors.New("the program or the directory is not the pinned one")
)

// A MovedError means that the command's directory now leads to another place than required. The command did not start.
type MovedError struct {
	To string // the place, without links
}

func (m *MovedError) Error() string { return "the command's directory leads elsewhere" }

var refusals = map[string]error{"begun": ErrBegun, "never": ErrNever, "other": ErrOther, "cwd": ErrCwd,
	"home": ErrHome, "shell": ErrShell, "cut": ErrCut, "lost": ErrLost, "absent": ErrOther, "gone": ErrOther,
	"ended": ErrEnded, "outside": ErrOutside, "special": ErrSpecial, "missing": ErrMissing, "mounted": ErrMounted,
	"walk": ErrWalk, "shared": ErrShared, "git": ErrGit, "changed": ErrChanged, "unwritten": ErrUnwritten,
	"program": ErrProgram}

// Times are the periods for which the host waits while it runs a command.
type Times struct {
	Term     time.Duration // from ^C to SIGTERM
	Kill     time.Duration // from ^C to SIGKILL
	Quiet    time.Duration // interval between checks whether a silent command waits for input
	Patience time.Duration // how long a command may wait for input while no user is attached
	Idle     time.Duration // how long a person's shell stays without a reader
	Open     time.Duration // how long opening the files of a command may take
}

// DefaultTimes are the times that [Open] and [Ask] set.
var DefaultTimes = Times{Term: 2 * time.Second, Kill: 4 * time.Second, Quiet: time.Second, Patience: 20 * time.Second,
	Idle: 30 * time.Minute, Open: 5 * time.Second}

// A Client runs commands on one host over one connection. It is safe for concurrent use.
type Client struct {
	Facts Facts
	Times Times

	conn  Conn
	tail  bool  // the host has GNU tail
	since int64 // when the host was asked for its boot and its stamp, in seconds of its clock
}

// Open returns the client of a host. It reuses the results of Ask over the same connection. That is safe: the script
// itself refuses to start a command if the stamp or the boot has changed, and after any refusal the next Open asks
// again. The error is that of [Ask].
func Open(ctx context.Context, conn Conn) (*Client, error) {
	if m, ok := conn.(Memory); ok {
		if c, ok := m.Recall().(Client); ok {
			c.conn, c.Times = conn, DefaultTimes
			return &c, nil
		}
	}
	return Ask(ctx, conn)
}

// Ask asks a host for its facts, and installs the keeper there if it is missing. A host without a writable home
// directory has no keeper: it runs only read-only commands (Start.Plain), and keeps no record of them. The error is the
// connection's, or reports an answer that cannot be parsed.
func Ask(ctx context.Context, conn Conn) (*Client, error) {
	c := &Client{conn: conn, Times: DefaultTimes}
	if err := c.ask(ctx); err != nil {
		return nil, err
	}
	if c.Facts.Home != "" {
		found := *c
		found.conn = nil
		c.remember(found)
	}
	return c, nil
}

// remember stores v with the connection, for Open. A nil v removes the stored value.
func (c *Client) remember(v any) {
	if m, ok := c.conn.(Memory); ok {
		m.Remember(v)
	}
}

func (c *Client) ask(ctx context.Context) error {
	for range 2 {
		err := c.probe(ctx, c.line("probe"), nil)
		if !errors.Is(err, errSilent) {
			return err
		}
		if err := c.install(ctx); err != nil {
			return err
		}
	}
	return c.probe(ctx, bare("probe"), strings.NewReader(script))
}

// installer writes its input to the keeper's path, completely or not at all. It contains no character that a login
// shell treats specially within single quotes.
const installer = `umask 077; d=$HOME/.countersign; mkdir -p "$d" && cat >"$d/new.$$" && ` +
	`[ "$(wc -c <"$d/new.$$")" -eq "$2" ] && chmod 700 "$d/new.$$" && mv "$d/new.$$" "$d/$1" || rm -f "$d/new.$$"`

func (c *Client) install(ctx context.Context) error {
	line := fmt.Sprintf("exec sh -c '%s' sh keeper-%s %d", installer, Version, len(script))
	_, err := c.conn.Exec(ctx,
		Exec{Line: line, Stdin: strings.NewReader(script), Stdout: io.Discard, Stderr: io.Discard})
	return err
}

// runner runs the keeper, or reports that the keeper is missing. Without that report, the caller could not know that
// nothing was started. See installer for its characters.
const runner = `[ -r "$0" ] && exec sh "$0" "$@"; for m; do case $m in mark=*) m=${m#mark=}; ` +
	`echo; echo "$m:begin"; echo; echo "$m:` + gone + `" ;; esac; done`

const gone = "refused:gone"

// line returns the command line for the login shell that runs a verb.
func (c *Client) line(verb string, args ...string) string {
	return `exec sh -c '` + runner + `' "$HOME/.countersign/keeper-` + Version + `" ` + verb + " " +
		strings.Join(args, " ")
}

// bare returns a command line for a host without the keeper. It reads the keeper from its input before the rest.
func bare(verb string, args ...string) string {
	return fmt.Sprintf(`exec sh -c 'eval "$(dd bs=1 count=%d 2>/dev/null)"' keeper %s %s`,
		len(script), verb, strings.Join(args, " "))
}

// newMark returns a random word that marks the lines that the keeper itself prints.
func newMark() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // it does not fail
	return hex.EncodeToString(b[:])
}

var (
	errSilent = errors.New("the keeper script did not respond")
	plainWord = lazyregexp.New(`^[A-Za-z0-9._%/-]*$`)
	name      = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)
)

// reserved reports whether the keeper's directory uses the name for something other than a journal.
func reserved(id string) bool {
	return id == "terminals" || id == "stamp" || strings.HasPrefix(id, "keeper-") ||
		strings.HasPrefix(id, "staged-") || strings.HasPrefix(id, "new.") || strings.HasPrefix(id, "stamp.")
}

func checkID(id string) error {
	if !name.MatchString(id) || reserved(id) {
		return fmt.Errorf("supervisor: %q cannot be the name of a journal", id)
	}
	return nil
}

func (c *Client) probe(ctx context.Context, line string, stdin io.Reader) error {
	mark := newMark()
	var out bytes.Buffer
	end, err := c.exec(ctx, Exec{Line: line + " mark=" + mark, Stdin: stdin}, mark, &out, nil)
	if err != nil {
		return err
	}
	switch end {
	case "over":
	case gone:
		return errSilent
	default:
		return fmt.Errorf("supervisor: the host answered %.40q", end)
	}
	c.Facts = Facts{}
	for text := range strings.Lines(out.String()) {
		key, value, _ := strings.Cut(strings.TrimSpace(text), "=")
		if key != "os" && !plainWord.MatchString(value) {
			return fmt.Errorf("supervisor: the host answered %s=%.40q", key, value)
		}
		switch key {
		case "os":
			c.Facts.OS = clip.Prefix(strings.ToValidUTF8(value, ""), 200)
		case "shell":
			c.Facts.Shells = append(c.Facts.Shells, shell.Grammar(value))
		case "pty":
			c.Facts.PTY = true
		case "tail":
			c.tail = true
		case "proc":
			c.Facts.Proc = true
		case "home":
			c.Facts.Home, err = url.PathUnescape(value)
		case "boot":
			c.Facts.Boot = value
		case "stamp":
			c.Facts.Stamp = value
		case "since":
			c.since, err = strconv.ParseInt(value, 10, 64)
		}
		if err != nil {
			return fmt.Errorf("supervisor: the host answered %s=%.40q", key, value)
		}
	}
	return nil
}

// Handle returns the handle for finding a command that may have started. It contains the host's boot, the stamp of its
// journals, the time when these were read, and the version of the keeper.
func (c *Client) Handle() string {
	return strings.Join([]string{c.Facts.Boot, c.Facts.Stamp, strconv.FormatInt(c.since, 10), Version}, "/")
}

// Journaled reports whether a handle was made on a host with journals. On a host without journals, a command that is
// not found may still have started.
func Journaled(h string) bool {
	f := strings.Split(h, "/")
	return len(f) > 1 && f[1] != ""
}

// handle returns the script's arguments for a handle.
func handle(h string) ([]string, error) {
	f := strings.Split(h, "/")
	if len(f) != 4 || !plainWord.MatchString(h) {
		return nil, fmt.Errorf("supervisor: %.80q is not a handle", h)
	}
	if _, err := strconv.ParseInt(f[2], 10, 64); err != nil {
		return nil, fmt.Errorf("supervisor: %.80q is not a handle", h)
	}
	return []string{"boot=" + f[0], "stamp=" + f[1], "since=" + f[2]}, nil
}

// exec runs a line whose output has the mark, and returns the text of the keeper's last line. The command's output goes
// to out. errSilent means that the keeper did not respond.
func (c *Client) exec(ctx context.Context, x Exec, mark string, out io.Writer, asks func(bool)) (string, error) {
	return c.read(ctx, x, NewStream(mark, out), asks)
}

func (c *Client) read(ctx context.Context, x Exec, found *Stream, asks func(bool)) (string, error) {
	x.Stdout = found
	x.Stderr = &notes{mark: found.mark, asks: asks}
	_, err := c.conn.Exec(ctx, x)
	end, ok := found.End()
	if !ok || strings.HasPrefix(end, "refused:") {
		c.remember(nil)
	}
	switch {
	case err != nil: // more output may have been lost
		return "", err
	case ok:
		return end, nil
	case !found.Begun():
		return "", errSilent
	}
	return "", fmt.Errorf("keeper: %w", io.ErrUnexpectedEOF)
}

// isCut reports whether the keeper started to print and stopped without its last line, although the connection reported
// no error.
func isCut(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }

// refusal returns the reason why the keeper started nothing, or nil if end is not a refusal.
func refusal(end string) error {
	why, refused := strings.CutPrefix(end, "refused:")
	if !refused {
		return nil
	}
	if place, moved := strings.CutPrefix(why, "moved:"); moved {
		to, err := url.PathUnescape(place)
		return errors.Join(err, &MovedError{to})
	}
	return refusals[why]
}

// maxEnded is the maximum total length of the reported names of ended processes, in bytes.
const maxEnded = 200

// result parses the keeper's report of how a command ended.
func result(end string) (Result, error) {
	if err := refusal(end); err != nil {
		return Result{}, err
	}
	f := strings.Split(end, ":")
	if len(f) < 6 {
		return Result{}, fmt.Errorf("supervisor: the host answered %.40q", end)
	}
	exit, err1 := strconv.Atoi(f[0])
	cwd, err2 := url.PathUnescape(f[1])
	ms, err3 := strconv.ParseInt(f[3], 10, 64)
	left, err4 := strconv.Atoi(f[4])
	size, err5 := strconv.ParseInt(f[5], 10, 64)
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return Result{}, fmt.Errorf("supervisor: the host answered %.40q", end)
	}
	f = append(f, "", "") // a journal of an earlier release has neither the names nor the real place
	names, err1 := url.PathUnescape(f[6])
	real, err2 := url.PathUnescape(f[7])
	if err := errors.Join(err1, err2); err != nil {
		return Result{}, fmt.Errorf("supervisor: the host answered %.40q", end)
	}
	return Result{Exit: exit, Ended: strings.Fields(clip.Prefix(names, maxEnded)),
		Cwd: cwd, Real: real, TimedOut: f[2] == "limit", Stopped: f[2] == "stopped", Asked: f[2] == "input",
		Hangup: f[2] == "hangup", Took: time.Duration(ms) * time.Millisecond, Left: left, Bytes: size}, nil
}
